// SPDX-License-Identifier: Apache-2.0
// memcpy without its worst case. C libraries copy more than 2 KiB by the instruction `rep movsb`. Some processors (Zen 3)
// take 20 times as long for that if the target begins 1 to 31 bytes after the source, modulo 4096. Large arrays from
// malloc do begin 16 bytes after a page, and what is copied to them, at a page (docs/decisions/0050-copies-by-pieces.md).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace halocline::comm {

/// to[0, bytes) = from[0, bytes).  Pre: no overlap.
inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    constexpr std::size_t piece = 2048;
    constexpr std::uintptr_t page = 4096, close = 32;
    const std::uintptr_t behind =
        (reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from)) % page;
    if (bytes <= piece || behind == 0 || behind >= close) {
        if (bytes > 0) std::memcpy(to, from, bytes);
        return;
    }
    for (std::size_t at = 0; at < bytes; at += piece) std::memcpy(to + at, from + at, std::min(piece, bytes - at));
}

} // namespace halocline::comm
