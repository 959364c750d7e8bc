// SPDX-License-Identifier: Apache-2.0
// A copy that two cores make together: a counter that both increment deals out the pieces.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace halocline::comm {

/// Half of a small message, because both cores begin at about the same time; less of a large one, so that neither waits
/// long for the other's last piece. Whole pages, because a piece may cost a system call
/// (docs/decisions/0047-ordinary-memory.md).
constexpr std::uint64_t piece_bytes(std::uint64_t bytes) noexcept {
    constexpr std::uint64_t page = 4096, least = 64 * 1024, most = 512 * 1024;
    const std::uint64_t piece = std::clamp(bytes / 4, std::min(bytes / 2, least), most);
    return std::max(page, (piece + page - 1) / page * page);
}
constexpr std::uint64_t pieces_of(std::uint64_t bytes, std::uint64_t piece) noexcept {
    return (bytes + piece - 1) / piece;
}
constexpr std::uint64_t pieces_of(std::uint64_t bytes) noexcept { return pieces_of(bytes, piece_bytes(bytes)); }

/// Calls copy(i) for each of [0, pieces) that nobody has taken yet, until none is left. Returns how many these were.
template <class Copy>
std::uint64_t take_pieces(std::atomic<std::uint64_t>& next, std::uint64_t pieces, Copy&& copy) noexcept {
    for (std::uint64_t copied = 0;; ++copied) {
        // Relaxed: the counter only deals out pieces. That they have been copied is published elsewhere, with release.
        const std::uint64_t i = next.fetch_add(1, std::memory_order_relaxed);
        if (i >= pieces) return copied;
        copy(i);
    }
}

/// take_pieces() of a message in pieces of piece_bytes(): calls copy(start, bytes).
template <class Copy>
std::uint64_t copy_pieces(std::atomic<std::uint64_t>& next, std::uint64_t bytes, Copy&& copy) noexcept {
    const std::uint64_t piece = piece_bytes(bytes);
    return take_pieces(next, pieces_of(bytes, piece),
                       [&](std::uint64_t i) { copy(i * piece, std::min(piece, bytes - i * piece)); });
}

} // namespace halocline::comm
