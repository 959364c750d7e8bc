// SPDX-License-Identifier: Apache-2.0
// Taking cache lines back from a core that has read them (docs/decisions/0010).
#pragma once

#include <halocline/comm/detail/prefetch.hpp>

#include <cstddef>
#include <cstdint>

namespace halocline::comm {

namespace detail {
extern const bool claims_by_prefetch; ///< which of the two ways of claim_lines() is faster on this processor
}

/// Claims the cache line of `at`, as claim_lines() does.  Pre: *at is about to be written anyway.
inline void claim_line(std::byte* at) noexcept {
    if (detail::claims_by_prefetch)
        prefetch_for_writing(at);
    else
        *const_cast<volatile std::byte*>(at) = std::byte{0};
}

/// Claims each cache line that starts in [first, last) before any of it is filled, so that lines held by another core
/// are fetched concurrently; filled one after the other, each line would take several entries of the store queue. A
/// claim stores one byte, and as many claims are in flight as that queue has entries; on Intel cores, whose stores wait
/// for each other, it is a prefetch for writing.  Pre: [first, last) is about to be written anyway.
inline void claim_lines(std::byte* first, std::byte* last) noexcept {
    constexpr std::uintptr_t line = 64;
    first += (line - reinterpret_cast<std::uintptr_t>(first) % line) % line;
    if (detail::claims_by_prefetch)
        for (; first < last; first += line) prefetch_for_writing(first);
    else
        for (; first < last; first += line) *const_cast<volatile std::byte*>(first) = std::byte{0};
}

/// The most bytes of peers' memory that an exchange may use for claiming to pay off: both slots of all messages or,
/// with ghosts in a field, the ghosts and an equal number of owned sites. Claiming pays only while these lines lie in
/// the second-level cache of the core that last read them; lines that come from memory gain nothing.
/// Cost: asks the C library; for set-up.
std::size_t largest_claimed();

} // namespace halocline::comm
