// SPDX-License-Identifier: Apache-2.0
// A copy that two cores make together: a counter that both raise deals its pieces out.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace halocline::comm {

/// An eighth of the message, so that neither core waits long for the other's last piece, but large enough that a piece
/// costs more than the move of the counter's cache line.
constexpr std::uint64_t piece_bytes(std::uint64_t bytes) noexcept {
    const std::uint64_t least = bytes < 32 * 1024 ? 8 * 1024 : 16 * 1024;
    return std::clamp<std::uint64_t>(bytes / 8 / 4096 * 4096, least, 128 * 1024);
}
constexpr std::uint64_t pieces_of(std::uint64_t bytes, std::uint64_t piece) noexcept {
    return (bytes + piece - 1) / piece;
}
constexpr std::uint64_t pieces_of(std::uint64_t bytes) noexcept { return pieces_of(bytes, piece_bytes(bytes)); }

/// Copies pieces that nobody has taken yet by copy(to, from, bytes), until none is left. How many these were.
template <class Copy>
std::uint64_t copy_pieces(std::atomic<std::uint64_t>& next, std::byte* to, const std::byte* from, std::uint64_t bytes,
                          Copy&& copy) noexcept {
    const std::uint64_t piece = piece_bytes(bytes), pieces = pieces_of(bytes, piece);
    for (std::uint64_t copied = 0;; ++copied) {
        // Relaxed: it only deals pieces out. That they are there is said elsewhere, with release.
        const std::uint64_t i = next.fetch_add(1, std::memory_order_relaxed);
        if (i >= pieces) return copied;
        copy(to + i * piece, from + i * piece, std::min(piece, bytes - i * piece));
    }
}

} // namespace halocline::comm
