// SPDX-License-Identifier: Apache-2.0
// Taking cache lines back from a core that has read them (docs/decisions/0010).
#pragma once

#include <cstddef>
#include <cstdint>

namespace halocline::comm {

/// Stores a byte to each cache line that starts in [first, last), before the whole is filled. Lines that another core
/// holds are then under way together, as many as the store queue has entries; filled one after the other, each line
/// would take several entries.  Pre: [first, last) is going to be written anyway.
inline void claim_lines(std::byte* first, std::byte* last) noexcept {
    constexpr std::uintptr_t line = 64;
    first += (line - reinterpret_cast<std::uintptr_t>(first) % line) % line;
    for (; first < last; first += line) *const_cast<volatile std::byte*>(first) = std::byte{0};
}

/// The most bytes that an exchange may write into peers' memory for claiming to pay. It does only if the lines still lie
/// in the second-level cache of the core that read them last: lines that come from memory gain nothing. They are both
/// slots of all messages; or, with ghosts in a field, the ghosts and as many own sites.
/// Cost: asks the C library; for set-up.
std::size_t largest_claimed();

} // namespace halocline::comm
