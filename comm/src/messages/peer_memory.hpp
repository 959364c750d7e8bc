// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "job/job_core.hpp"
#include "message_layout.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <sys/types.h>

namespace halocline::comm {

/// How this rank reads and writes the memory of a peer of its node: the peer's slab as it is mapped here, all of it if both
/// are threads of one process, else by process_vm_readv if the system allows it.
class peer_memory {
  public:
    /// A word in this rank's memory, on its stack for the time of set-up, that its peers try to read.
    static std::uint64_t probe_word(int rank) noexcept {
        return 0x68616c6f636c696eu + static_cast<std::uint64_t>(rank);
    }
    /// `probe`: where the peer's word is. `may_read`: messenger_options::read_processes.
    peer_memory(const job_core& core, int peer, std::uint64_t probe, bool may_read);

    /// Where an announced message lies here; nullptr: it is not mapped.
    [[nodiscard]] const std::byte* mapped(const announcement& a) const noexcept {
        return a.in_slab != 0  ? slab_ + a.address
               : same_process_ ? reinterpret_cast<const std::byte*>(a.address)
                               : nullptr;
    }
    /// Where the peer's receive buffer, which this rank as its sender is to write, lies here.
    [[nodiscard]] std::byte* target(std::uint64_t address, bool in_slab) const noexcept {
        return in_slab ? slab_ + address : reinterpret_cast<std::byte*>(address);
    }
    /// Does the peer reach memory of this rank that lies outside its slab?
    [[nodiscard]] bool is_same_process() const noexcept { return same_process_; }
    /// Copies memory of the peer that is not mapped here.  False: the system doesn't let it.
    [[nodiscard]] bool read(std::byte* to, std::uint64_t address, std::uint64_t bytes) const noexcept;
    [[nodiscard]] std::string describe() const;

  private:
    std::byte* slab_; ///< the peer's, as mapped here
    pid_t pid_;
    bool same_process_, readable_ = false;
    std::string why_not_readable_;
};

} // namespace halocline::comm
