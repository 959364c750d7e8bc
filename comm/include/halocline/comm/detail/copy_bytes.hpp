// SPDX-License-Identifier: Apache-2.0
// memcpy without its worst cases. C libraries copy more than 2 KiB by the instruction `rep movsb`. Some processors
// (Zen 3) take 20 times as long for that if the target begins 1 to 31 bytes after the source, modulo 4096. Large arrays
// from malloc do begin 16 bytes after a page, and what is copied to them, at a page. Others (Zen 5) are the faster for
// it, up to 3 times where lines are away, but glibc leaves it on AMD where a copy is larger than a second-level cache
// (docs/decisions/0050-copies-by-pieces.md).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

// Sanitizers don't look into assembly.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HALOCLINE_WATCHED_COPIES
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HALOCLINE_WATCHED_COPIES
#endif
#endif

namespace halocline::comm {

/// Does this processor write whole lines by `rep movsb` without waiting for those that they replace (Zen 5 and later)?
/// Stores of vectors wait there: in lines that another core has read they take 2 (near) to 4 times as long (far).
[[nodiscard]] bool moves_skip_waits() noexcept;

/// The string move itself, which C libraries use for more than about 2 KiB only.  Pre: as for copy_bytes().
inline void move_bytes(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
#if defined(__x86_64__) && !defined(HALOCLINE_WATCHED_COPIES)
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
    std::memcpy(to, from, bytes);
#endif
}

/// to[0, bytes) = from[0, bytes).  Pre: no overlap.
inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    constexpr std::size_t moved = 1024, small = 2048, large = std::size_t{512} << 10;
    constexpr std::uintptr_t page = 4096, close = 32;
    if (bytes > moved && bytes <= small && moves_skip_waits()) return move_bytes(to, from, bytes);
    const std::uintptr_t behind =
        (reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from)) % page;
    std::size_t piece = bytes;
    if (bytes > small && behind > 0 && behind < close)
        piece = small;
    else if (bytes > large && moves_skip_waits())
        piece = large;
    for (std::size_t at = 0; at < bytes; at += piece) std::memcpy(to + at, from + at, std::min(piece, bytes - at));
}

} // namespace halocline::comm
