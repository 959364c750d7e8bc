// SPDX-License-Identifier: Apache-2.0
// Which way a large message between two ranks of a node takes, and with which instructions it is copied. Each end
// decides what it can measure (docs/decisions/0015-matched-messages.md, 0047-ordinary-memory.md, 0050-copies-by-pieces.md).
#pragma once

#include "node/peer_stores.hpp"

#include <halocline/comm/costs.hpp>
#include <halocline/comm/detail/streaming_watch.hpp>
#include <halocline/comm/messenger.hpp>
#include <halocline/comm/path.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace halocline::comm {

/// Who copies a large message.
enum class large_message_way {
    alone,  ///< the receiver: out of the sender's memory
    both,   ///< both ends, piece by piece
    pushed, ///< the sender: into the receiver's buffer
    staged, ///< both: the sender into its slab, the receiver out of there
};

/// Smallest message that its sender may be asked to push.
inline constexpr std::size_t least_pushed = least_streamed;

/// Largest message that is copied first (two places).
inline constexpr std::size_t most_copied = least_pushed - 1;
/// Largest message from a slab that is copied first only because it belongs to a stream: the sender is free then, but
/// two copies of a longer one take longer than the receiver's one.
inline constexpr std::size_t most_freed = 16 * 1024;

/// The receiver's choice.
class receiving_policy {
  public:
    receiving_policy(path wish, const costs& c, const messenger_options& o);

    /// What the ends reach of each other's buffers.
    struct reach {
        bool source = false;        ///< the receiver can read the message
        bool source_mapped = false; ///< without a system call
        bool target_mapped = false; ///< the sender can write to the receiver's buffer without one
    };
    /// `sends_too`: this rank is sending to the peer as well.
    [[nodiscard]] large_message_way way_of(std::uint64_t bytes, reach r, bool sends_too) const noexcept;
    /// Smallest message that is mapped here and may take another way than alone.
    [[nodiscard]] std::uint64_t least_shared() const noexcept { return least_shared_; }
    /// Is it time to measure how far away the sender is? Seldom, and only for messages that might be pushed.
    [[nodiscard]] bool is_look_due(std::uint64_t bytes, std::uint64_t now) const noexcept {
        return bytes >= least_pushed && distance_.due(now);
    }
    void looked(std::uint64_t line_ticks, std::uint64_t now) noexcept { distance_.read(line_ticks, now); }
    [[nodiscard]] std::string describe() const;

  private:
    [[nodiscard]] bool wants_push(std::uint64_t bytes, bool sends_too) const noexcept;
    /// Is a message that this rank can't map there sooner by way of the sender's slab than by the kernel?
    [[nodiscard]] bool staging_pays(std::uint64_t bytes) const noexcept;

    bool moved_; ///< senders push by moves, through their caches
    bool leaves_choice_;
    std::uint64_t synergistic_, streamed_; ///< messenger_options
    std::uint64_t least_shared_;
    streaming_watch distance_; ///< are messages pushed past the sender's cache?
};

/// The sender's choice.
class sending_policy {
  public:
    sending_policy(path wish, const costs& c);

    /// Should a copy in this rank's slab be announced although the receiver can read the original: because it would
    /// bypass this rank's cache or be moved, which is quicker than the receiver's reading, or to find out whether it
    /// should?
    [[nodiscard]] bool copying_pays(std::size_t bytes, bool is_waited_for) const noexcept;
    /// Copies into this rank's slab what the receiver reads there. True if it bypassed the cache.
    bool fill(std::byte* to, const std::byte* from, std::size_t bytes) const noexcept;
    /// Copies a piece of a message that the receiver wants pushed into its buffer.
    void push(std::byte* to, const std::byte* from, std::size_t bytes) const noexcept;
    /// Does fill() replace lines without fetching them? Then there is nothing to prefetch.
    [[nodiscard]] bool moves() const noexcept { return moved_; }
    /// Is it time to measure how far away the receiver is?
    [[nodiscard]] bool is_look_due(std::uint64_t now) const noexcept { return distance_.due(now); }
    void looked(std::uint64_t line_ticks, std::uint64_t now) noexcept { distance_.read(line_ticks, now); }
    [[nodiscard]] std::string describe() const;

  private:
    bool moved_;             ///< copies and pushed messages are moved through the cache
    peer_stores unstreamed_; ///< how copies are made that don't bypass the cache
    /// Do copies bypass the cache? If they are moved: are messages copied first, because the cores are far apart?
    streaming_watch distance_;
};

} // namespace halocline::comm
