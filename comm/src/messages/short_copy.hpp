// SPDX-License-Identifier: Apache-2.0
// A copy of at most a cache line, in line: calling memcpy with a number of bytes that the compiler doesn't know takes
// longer than the copy.
#pragma once

#include <cstddef>
#include <cstring>

namespace halocline::comm {

/// Both ends of a number of bytes between `piece` and 2 `piece`.
template <std::size_t piece>
void copy_ends(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    std::memcpy(to, from, piece);
    std::memcpy(to + bytes - piece, from + bytes - piece, piece);
}

/// Pre: at most 64 bytes.
[[gnu::always_inline]] inline void copy_line(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    if (bytes >= 32)
        copy_ends<32>(to, from, bytes);
    else if (bytes >= 16)
        copy_ends<16>(to, from, bytes);
    else if (bytes >= 8)
        copy_ends<8>(to, from, bytes);
    else if (bytes >= 4)
        copy_ends<4>(to, from, bytes);
    else if (bytes >= 2)
        copy_ends<2>(to, from, bytes);
    else if (bytes == 1)
        *to = *from;
}

} // namespace halocline::comm
