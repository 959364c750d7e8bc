// SPDX-License-Identifier: Apache-2.0
// An inline copy of at most a cache line: calling memcpy with a size unknown to the compiler takes longer than the copy
// itself.
#pragma once

#include <cstddef>
#include <cstring>

namespace halocline::comm {

/// Copies `bytes` bytes, between `piece` and 2 `piece`, as two overlapping pieces.
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
