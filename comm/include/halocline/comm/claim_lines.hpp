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

} // namespace halocline::comm
