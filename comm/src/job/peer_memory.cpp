// SPDX-License-Identifier: Apache-2.0
#include "peer_memory.hpp"

#include "control/random_value.hpp"

#include <cerrno>
#include <cstring>
#include <sys/uio.h>

namespace halocline::comm {
namespace {

/// Moves bytes between `here` and another process of this node.  False: the system refuses; errno says why.
bool move_bytes(decltype(process_vm_readv)& move, pid_t pid, std::byte* here, std::uint64_t there,
                std::uint64_t bytes) noexcept {
    while (bytes > 0) { // the system moves at most 2 GiB per call
        const iovec own{here, bytes};
        const iovec theirs{reinterpret_cast<void*>(there), bytes};
        const ssize_t n = move(pid, &own, 1, &theirs, 1, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        here += n;
        there += static_cast<std::uint64_t>(n);
        bytes -= static_cast<std::uint64_t>(n);
    }
    return true;
}

} // namespace

bool peer_buffer::read_process(std::byte* to, std::uint64_t at, std::uint64_t bytes) const noexcept {
    return move_bytes(process_vm_readv, pid_, to, address_ + at, bytes);
}

bool peer_buffer::write_process(std::uint64_t at, const std::byte* from, std::uint64_t bytes) const noexcept {
    return move_bytes(process_vm_writev, pid_, const_cast<std::byte*>(from), address_ + at, bytes); // only read
}

memory_probe::memory_probe() : word_(random_value<std::uint64_t>()) {}

peer_memory::peer_memory(const job_core& core, int peer, memory_probe::told probe, bool may_read)
    : slab_(core.peer_base[peer]), pid_(core.members[peer].pid),
      // Only if a peer of this node is a thread is there no mapping; pids may coincide across namespaces.
      same_process_(core.mappings.empty()) {
    if (same_process_) return;
    std::uint64_t word = 0;
    if (!may_read)
        why_not_ = "not wanted";
    else if (!move_bytes(process_vm_readv, pid_, reinterpret_cast<std::byte*>(&word), probe.address, sizeof word))
        why_not_ = std::strerror(errno);
    else if (word != probe.word)
        why_not_ = "pid " + std::to_string(pid_) + " is another process here";
    if (!why_not_.empty()) pid_ = 0;
}

std::string peer_memory::describe() const {
    if (same_process_) return "all memory directly (same process)";
    if (pid_ != 0) return "slabs directly, other memory by process_vm_readv and process_vm_writev";
    return "slabs directly, other memory through copies in its slab (process_vm_readv: " + why_not_ + ")";
}

} // namespace halocline::comm
