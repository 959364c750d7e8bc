// SPDX-License-Identifier: Apache-2.0
// What the ends of a message share. For each ordered pair of ranks there is one ring of cells in the receiver's slab,
// with one writer and one reader: no lock, and a sender is slowed down by nobody but its receiver. (One locked list for
// all senders, as in Hybrid MPI, costs each message a second cache line that moves between cores.)
//
// A rank's block in its slab holds one link per peer: a farewell line, credit for its sends, the ring of what that peer
// sends and the slots of its longer messages, records of its own large sends to that peer, and pieces in which it
// stages memory that the peer can't read. Changes raise layout_number (job/layout_number.hpp).
#pragma once

#include "node/peer_memory.hpp"

#include <halocline/comm/control_line.hpp>
#include <halocline/comm/messenger.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace halocline::comm {

/// Where a large message lies, and the record of its send.
struct announcement {
    std::uint64_t bytes = 0;
    buffer_place place;
    std::uint64_t generation = 0;
    std::uint32_t record = 0;
};

/// One message, or the announcement of one, or the label of one in a slot: a cache line, stored last.
struct alignas(64) message_cell {
    static constexpr std::uint32_t announced = ~std::uint32_t{0};

    std::atomic<std::uint64_t> number{0}; ///< count of messages of this sender, from 1: the flag
    std::int32_t tag = 0;
    std::uint32_t context = 0;
    std::uint32_t bytes = 0; ///< of the payload; `announced`: the payload is the announcement of a large message
    /// How many slots of what comes the other way its sender has taken, modulo 2^32: so an answer brings credit with
    /// it, and nobody fetches a line for that.
    std::uint32_t slots_taken = 0;
    std::byte payload[40];

    [[nodiscard]] std::uint64_t message_bytes() const noexcept {
        if (bytes != announced) return bytes;
        announcement a;
        std::memcpy(&a, payload, sizeof a);
        return a.bytes;
    }
};
static_assert(sizeof(message_cell) == 64);
static_assert(sizeof(announcement) <= sizeof(message_cell::payload));

// A line that the reader's prefetchers have fetched must be taken back before it can be filled. So no two used lines
// are neighbours (prefetchers fetch pairs), and none lies where a prefetcher expects the next.

/// A message that doesn't fit into a cell. Its lines are used from the far end: prefetchers look ahead.
class message_slot {
  public:
    static constexpr std::size_t line_bytes = 64;
    static constexpr std::size_t lines = messenger_options::largest_immediate / line_bytes;
    static_assert(lines * line_bytes == messenger_options::largest_immediate);
    message_cell cell;
    [[nodiscard]] std::byte* line(std::size_t i) noexcept { return place_[lines - 1 - i].line; }
    [[nodiscard]] const std::byte* line(std::size_t i) const noexcept { return place_[lines - 1 - i].line; }

  private:
    struct alignas(128) place {
        std::byte line[line_bytes];
    };
    place place_[lines];
};

/// Cells, by the count of messages. Those that follow each other are further apart than strides that prefetchers learn:
/// 8 B take 70 ns one way through cells in a row, 48 ns through these.
class cell_ring {
  public:
    static constexpr std::uint64_t size = 64;
    [[nodiscard]] message_cell& of(std::uint64_t count) noexcept { return place_[count * step % size].cell; }
    [[nodiscard]] const message_cell& of(std::uint64_t count) const noexcept {
        return place_[count * step % size].cell;
    }

  private:
    static constexpr std::uint64_t step = 27; // 3.4 KiB
    struct alignas(128) place {
        message_cell cell;
    };
    place place_[size];
};

/// One announced send, in the sender's slab. What each end writes has its own line.
struct send_record {
    /// Set by the receiver, of one generation: the send that the record is used for.
    enum phase : std::uint64_t {
        announced,     ///< the receiver has not come yet
        shared,        ///< both ends copy pieces
        pushed,        ///< the sender copies, past its cache
        wants_staging, ///< the sender's slab is all that the receiver can read
        received
    };
    static constexpr std::uint64_t phases = 8;

    void set(std::uint64_t generation, phase p) noexcept {
        receiver.state.store(phases * generation + p, std::memory_order_release);
    }
    [[nodiscard]] phase phase_of(std::uint64_t generation) const noexcept {
        const std::uint64_t state = receiver.state.load(std::memory_order_acquire);
        return state / phases == generation ? static_cast<phase>(state % phases) : announced;
    }

    struct alignas(64) {
        std::atomic<std::uint64_t> state{0}; ///< phases * generation + phase, by the receiver
        buffer_place target;                 ///< shared, pushed: the receiver's buffer
        std::atomic<std::uint64_t> read{0};  ///< staging: pieces that the receiver has read
        std::byte looked_at{}; ///< to see how far away the sender is, who reads this line last in each send
    } receiver;
    alignas(64) std::atomic<std::uint64_t> next{0};          ///< next piece to copy, by either
    alignas(64) std::atomic<std::uint64_t> sender_pieces{0}; ///< that the sender has taken, with one of the marks below
    std::atomic<std::uint64_t> staged{0};                    ///< pieces that were ever in the staging area
    static constexpr std::uint64_t withdrawn = std::uint64_t{1} << 63; ///< there will be no more
    static constexpr std::uint64_t refused = std::uint64_t{1} << 62;   ///< the system did not let the sender copy one
};

struct link_layout {
    static constexpr std::size_t records = 64;
    static constexpr std::size_t slots = 4;          ///< few: their lines are still in caches
    static constexpr std::size_t staging_pieces = 2; // one is written while the other is read
    static constexpr std::size_t staging_bytes = 64 * 1024;
    static constexpr std::size_t copies = 16; ///< of sends that end before their receiver has read them
    static constexpr std::size_t copy_bytes = 16 * 1024;

    alignas(128) control_line farewell;                     ///< the peer's last word
    alignas(128) std::atomic<std::uint64_t> cells_taken{0}; ///< of this rank's messages, by the peer: its credit, read
                                                            ///< when what came with messages is used up
    std::atomic<std::uint64_t> slots_taken{0};
    cell_ring ring;
    message_slot slot[slots]; ///< messages are numbered through both: the next is in one of two places
    alignas(128) send_record record[records];
};

/// What a rank copies for one peer: pieces of large sends, and whole sends. Touched when it is used.
struct outbox {
    std::byte staging[link_layout::staging_pieces][link_layout::staging_bytes];
    std::byte copy[link_layout::copies][link_layout::copy_bytes];
};
/// Bytes of a rank's block: the links, and the outboxes behind them.
constexpr std::size_t block_bytes(int ranks) {
    return static_cast<std::size_t>(ranks) * (sizeof(link_layout) + sizeof(outbox));
}
inline link_layout* link_of(std::byte* block, int peer) { return reinterpret_cast<link_layout*>(block) + peer; }
/// Where a rank copies what goes to a peer.
inline outbox* outbox_of(std::byte* block, int ranks, int peer) {
    return reinterpret_cast<outbox*>(block + static_cast<std::size_t>(ranks) * sizeof(link_layout)) + peer;
}
/// Piece number `piece` of a message that is staged.
inline std::byte* staged_piece(outbox& box, std::uint64_t piece) {
    return box.staging[piece % link_layout::staging_pieces];
}

} // namespace halocline::comm
