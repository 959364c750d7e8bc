// SPDX-License-Identifier: Apache-2.0
// Measures how far away the core is that last used a cache line, by taking that line. The topology can't tell: virtual
// machines hide which cores share a cache, and are moved.
#pragma once

#include <halocline/comm/clock.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace halocline::comm {

/// Sets the byte and returns how many ticks it took this core to get its line: a few if it already had it, many if it
/// was in another core's cache or in memory.  Pre: the byte is this thread's to write.
/// Cost: waiting for the thread's earlier stores; then the line, and two readings of the clock.
inline std::uint64_t ticks_to_take(std::byte* byte, std::byte value = {}) noexcept {
    const auto in_order = [] { // out of order, the clock could be read before the line is here
#if defined(__x86_64__)
        __builtin_ia32_lfence();
        const std::uint64_t now = ticks();
        __builtin_ia32_lfence();
        return now;
#else
        return ticks();
#endif
    };
    std::atomic<int> earlier{0};
    earlier.exchange(1, std::memory_order_seq_cst);
    const std::uint64_t before = in_order();
    std::atomic_ref<unsigned char>(reinterpret_cast<unsigned char&>(*byte))
        .exchange(static_cast<unsigned char>(value), std::memory_order_seq_cst);
    return in_order() - before;
}

} // namespace halocline::comm
