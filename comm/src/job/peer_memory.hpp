// SPDX-License-Identifier: Apache-2.0
// How a rank copies from and to the memory of a peer of its node: the peer's slab as mapped here; everything, if both
// are threads of one process; otherwise through process_vm_readv and process_vm_writev, if the system allows them.
#pragma once

#include "job_core.hpp"

#include <halocline/comm/detail/copy_bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <sys/types.h>

namespace halocline::comm {

/// Where a buffer lies: an offset in its rank's slab, or an address in its address space. Ranks send these to each
/// other.
struct buffer_place {
    std::uint64_t address = 0;
    std::uint64_t in_slab = 0;
};
inline buffer_place place_of(const job_core& core, const std::byte* p) noexcept {
    const node_slab& slab = *core.memory;
    if (slab.contains(p)) return {static_cast<std::uint64_t>(p - slab.base()), 1};
    return {reinterpret_cast<std::uint64_t>(p), 0};
}

/// A buffer of a peer.
class peer_buffer {
  public:
    peer_buffer() = default;
    /// `here`: where it is mapped; nullptr: nowhere. `pid`: the peer's, if the system lets this rank copy its memory,
    /// else 0.
    peer_buffer(std::byte* here, pid_t pid, std::uint64_t address) : here_(here), pid_(pid), address_(address) {}

    [[nodiscard]] std::byte* mapped() const noexcept { return here_; }
    [[nodiscard]] bool is_reachable() const noexcept { return here_ != nullptr || pid_ != 0; }
    /// Copies its bytes [at, at + bytes).  False: the system refuses.
    [[nodiscard]] bool read(std::byte* to, std::uint64_t at, std::uint64_t bytes) const noexcept {
        if (here_ == nullptr) return pid_ != 0 && read_process(to, at, bytes);
        copy_bytes(to, here_ + at, bytes);
        return true;
    }
    [[nodiscard]] bool write(std::uint64_t at, const std::byte* from, std::uint64_t bytes) const noexcept {
        if (here_ == nullptr) return pid_ != 0 && write_process(at, from, bytes);
        copy_bytes(here_ + at, from, bytes);
        return true;
    }

  private:
    bool read_process(std::byte* to, std::uint64_t at, std::uint64_t bytes) const noexcept;
    bool write_process(std::uint64_t at, const std::byte* from, std::uint64_t bytes) const noexcept;

    std::byte* here_ = nullptr;
    pid_t pid_ = 0;
    std::uint64_t address_ = 0;
};

/// A random word in this rank's memory, which lives until its peers have tried to read it: the pid that they know may
/// denote another process to them, in a pid namespace of their own.
class memory_probe {
  public:
    struct told {
        std::uint64_t address = 0, word = 0;
    };
    /// Err: error: the system provides no random numbers.
    memory_probe();
    [[nodiscard]] told card() const noexcept { return {reinterpret_cast<std::uint64_t>(&word_), word_}; }

  private:
    std::uint64_t word_;
};

class peer_memory {
  public:
    /// `probe`: the peer's. `may_read`: may the system be asked for memory outside its slab?
    peer_memory(const job_core& core, int peer, memory_probe::told probe, bool may_read);

    [[nodiscard]] peer_buffer at(buffer_place place) const noexcept {
        std::byte* const here = place.in_slab != 0 ? slab_ + place.address
                                : same_process_    ? reinterpret_cast<std::byte*>(place.address)
                                                   : nullptr;
        return {here, pid_, place.address};
    }
    /// Can the peer reach memory of this rank outside its slab without a system call?
    [[nodiscard]] bool is_same_process() const noexcept { return same_process_; }
    /// Can it reach that place of this rank, whose slab is `own`, without a system call?
    [[nodiscard]] bool maps_back(const node_slab& own, const std::byte* place) const noexcept {
        return same_process_ || own.contains(place);
    }
    [[nodiscard]] std::string describe() const;

  private:
    std::byte* slab_; ///< the peer's, as mapped here
    pid_t pid_;       ///< 0: the system doesn't let this rank copy the peer's memory
    bool same_process_;
    std::string why_not_;
};

} // namespace halocline::comm
