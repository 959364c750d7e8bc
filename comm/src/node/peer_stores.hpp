// SPDX-License-Identifier: Apache-2.0
// Copies into memory that a peer on this node reads, and the look that tells how best to make them.
#pragma once

#include <halocline/comm/detail/claim_lines.hpp>
#include <halocline/comm/detail/copy_bytes.hpp>
#include <halocline/comm/detail/stream_bytes.hpp>
#include <halocline/comm/detail/streaming_watch.hpp>
#include <halocline/comm/detail/take_line.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace halocline::comm {

enum class peer_stores {
    cached,   ///< through this core's cache
    claimed,  ///< through it, with lines that the peer has read claimed first (docs/decisions/0010)
    streamed, ///< past it, while the peer's core is far away (docs/decisions/0032)
};

/// to[0, bytes) = from[0, bytes), with lines claimed first (docs/decisions/0010), a page at a time, so that claimed
/// lines are still in the first-level cache when they are filled.  Pre: no overlap.
inline void copy_claimed(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    constexpr std::size_t block = 4096;
    for (std::size_t i = 0; i < bytes; i += block) {
        const std::size_t n = std::min(block, bytes - i);
        claim_lines(to + i, to + i + n);
        copy_bytes(to + i, from + i, n);
    }
}

/// to[0, bytes) = from[0, bytes). Later release stores are seen after it, however it is made.  Pre: no overlap.
inline void copy_to_peer(peer_stores how, std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    switch (how) {
    case peer_stores::cached: return copy_bytes(to, from, bytes);
    case peer_stores::claimed: return copy_claimed(to, from, bytes);
    case peer_stores::streamed: stream_bytes(to, from, bytes); finish_streams();
    }
}

/// If that is due, measures how far away the peer is that has read [to, to + bytes) last, by the line in the middle and,
/// since that may have gone to memory, by the one of `label`, which the peer polls (null: there is none).
/// Changes no byte but the label's.  Pre: bytes > 0; the bytes are this thread's to write.
inline void look_for_peer(streaming_watch& watch, std::byte* to, std::size_t bytes, std::uint64_t now,
                          std::byte* label = nullptr) noexcept {
    if (!watch.due(now)) return;
    std::byte* const middle = to + bytes / 2;
    const std::uint64_t message = ticks_to_take(middle, *middle);
    watch.read(label == nullptr ? message : std::min(message, ticks_to_take(label)), now);
}

} // namespace halocline::comm
