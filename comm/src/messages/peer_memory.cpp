// SPDX-License-Identifier: Apache-2.0
#include "peer_memory.hpp"

#include <cerrno>
#include <cstring>
#include <sys/uio.h>

namespace halocline::comm {
namespace {

/// Copies memory of another process of this node.  False: the system doesn't let it; errno says why.
bool read_process(pid_t pid, std::byte* to, std::uint64_t address, std::uint64_t bytes) noexcept {
    while (bytes > 0) { // the system moves at most 2 GiB a call
        const iovec here{to, bytes};
        const iovec there{reinterpret_cast<void*>(address), bytes};
        const ssize_t n = process_vm_readv(pid, &here, 1, &there, 1, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        to += n;
        address += static_cast<std::uint64_t>(n);
        bytes -= static_cast<std::uint64_t>(n);
    }
    return true;
}

} // namespace

peer_memory::peer_memory(const job_core& core, int peer, std::uint64_t probe, bool may_read)
    : slab_(core.peer_base[static_cast<std::size_t>(peer)]), pid_(core.members[static_cast<std::size_t>(peer)].pid),
      same_process_(pid_ == core.members[static_cast<std::size_t>(core.rank)].pid) {
    if (same_process_) return;
    if (!may_read) {
        why_not_readable_ = "not wanted";
        return;
    }
    std::uint64_t word = 0;
    readable_ = read_process(pid_, reinterpret_cast<std::byte*>(&word), probe, sizeof word);
    if (!readable_) why_not_readable_ = std::strerror(errno);
    // Another process may have that number here, in a namespace of its own.
    else if (word != probe_word(peer)) {
        readable_ = false;
        why_not_readable_ = "pid " + std::to_string(pid_) + " is another process here";
    }
}

bool peer_memory::read(std::byte* to, std::uint64_t address, std::uint64_t bytes) const noexcept {
    return readable_ && read_process(pid_, to, address, bytes);
}

std::string peer_memory::describe() const {
    if (same_process_) return "all memory directly (same process)";
    if (readable_) return "slabs directly, other memory by process_vm_readv";
    return "slabs directly, other memory through copies in its slab (process_vm_readv: " + why_not_readable_ + ")";
}

} // namespace halocline::comm
