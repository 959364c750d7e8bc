// SPDX-License-Identifier: Apache-2.0
// What the ends of a message share. For each ordered pair of ranks there is one ring of cells in the receiver's slab,
// with one writer and one reader: no lock, and only its receiver can slow a sender down. (One locked list for all
// senders, as in Hybrid MPI, costs each message a second cache line that moves between cores.)
//
// A rank's slab holds a bell, and for each peer of its node a link (a farewell line, credit for its sends, the ring of
// what that peer sends and the slots of its longer messages) and an outbox (records of its own large sends to that peer,
// and copies).
// Changes raise layout_number (job/layout_number.hpp).
#pragma once

#include "job/peer_memory.hpp"

#include <halocline/comm/detail/control_line.hpp>
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

/// A cache line that holds a message, the announcement of one or its withdrawal, or the label of one in a slot.
/// `number` is stored last.
struct alignas(64) message_cell {
    static constexpr std::uint32_t announced = ~std::uint32_t{0}, withdrawn = announced - 1;

    std::atomic<std::uint64_t> number{0}; ///< the message's number among this sender's, from 1: the flag
    std::int32_t tag = 0;
    std::uint32_t context = 0;
    std::uint32_t bytes = 0; ///< of the payload; `announced`, `withdrawn`: the payload is an announcement
    /// How many slots of the opposite direction the sender has taken, modulo 2^32: so an answer brings credit along,
    /// and nobody has to fetch a line for it.
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

// A line fetched by the reader's prefetchers has to be taken back before it can be filled. So no two used lines are
// neighbours (prefetchers fetch pairs), and none lies where a prefetcher expects the next.

/// A message that doesn't fit into a cell. Its other lines are used from the far end, because prefetchers look ahead.
class message_slot {
  public:
    static constexpr std::size_t line_bytes = 64;
    static constexpr std::size_t lines = messenger_options::largest_immediate / line_bytes;
    static_assert(lines * line_bytes == messenger_options::largest_immediate);
    message_cell cell;
    [[nodiscard]] std::byte* line(std::size_t i) noexcept { return i == 0 ? first_ : place_[lines - 1 - i].line; }
    [[nodiscard]] const std::byte* line(std::size_t i) const noexcept {
        return i == 0 ? first_ : place_[lines - 1 - i].line;
    }

    /// Where a payload begins that is not spread over those lines, but moved in one piece.
    [[nodiscard]] std::byte* in_one_piece() noexcept { return place_[0].line; }
    [[nodiscard]] const std::byte* in_one_piece() const noexcept { return place_[0].line; }

  private:
    /// Beside the cell, with which it is filled and read: prefetchers, which fetch pairs, do no harm there.
    alignas(64) std::byte first_[line_bytes];
    struct alignas(128) place {
        std::byte line[line_bytes];
    };
    place place_[lines - 1];
    static_assert(sizeof place_ >= lines * line_bytes);
};

/// A cell, and the line beside it, for a payload of more bytes than fit into the cell. (Both are filled and read
/// together, so prefetchers do no harm there.)
struct alignas(128) ring_cell : message_cell {
    static constexpr std::size_t line_bytes = 64;
    alignas(line_bytes) std::byte line[line_bytes];

    /// Where a payload of that size lies.
    [[nodiscard]] std::byte* place_of(std::size_t size) noexcept { return size <= sizeof payload ? payload : line; }
};

/// Cells, indexed by message number. Consecutive ones are further apart than the strides that prefetchers learn: 8 B
/// take 70 ns one way through adjacent cells, 48 ns through these.
class cell_ring {
  public:
    static constexpr std::uint64_t size = 64;
    [[nodiscard]] ring_cell& of(std::uint64_t count) noexcept { return cell_[count * step % size]; }
    [[nodiscard]] const ring_cell& of(std::uint64_t count) const noexcept { return cell_[count * step % size]; }

  private:
    static constexpr std::uint64_t step = 27; // 3.4 KiB
    ring_cell cell_[size];
};

/// One announced send, in the sender's slab. Each end writes to its own lines.
struct send_record {
    /// Set by the receiver, for one generation: one use of the record by a send.
    enum phase : std::uint64_t {
        announced,     ///< the receiver has not come yet
        shared,        ///< both ends copy pieces
        pushed,        ///< the sender copies all
        wants_staging, ///< the sender puts pieces into its slab, one after the other
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
        std::atomic<std::uint64_t> state{0}; ///< phases * generation + phase, written by the receiver
        buffer_place target;                 ///< shared, pushed: the receiver's buffer
        std::atomic<std::uint64_t> read{0};  ///< staging: pieces that the receiver has read
        /// Touched to measure how far away the sender is, which reads this line last in each send.
        std::byte looked_at{};
    } receiver;
    alignas(64) std::atomic<std::uint64_t> next{0}; ///< next piece to copy, by either; staging: has the sender begun?
    alignas(64) std::atomic<std::uint64_t> sender_pieces{0}; ///< taken by the sender, with one of the marks below
    std::atomic<std::uint64_t> staged{0};                    ///< pieces placed in the staging area so far
    std::uint64_t own_generation = 0;                        ///< of the latest send, for the sender
    static constexpr std::uint64_t withdrawn = std::uint64_t{1} << 63; ///< there will be no more
    static constexpr std::uint64_t refused = std::uint64_t{1} << 62;   ///< the system refused the sender a piece
    /// `said`: what the sender has stored in sender_pieces.
    [[nodiscard]] static constexpr std::uint64_t pieces_in(std::uint64_t said) noexcept {
        return said & ~(withdrawn | refused);
    }
};

struct link_layout {
    static constexpr std::size_t slots = 4;          ///< few, so that their lines stay in caches
    static constexpr std::size_t staging_pieces = 8; // some are written while others are read
    static constexpr std::size_t staging_bytes = 16 * 1024;
    // Places for sends that end before their receiver has read them; a longer copy takes two.
    static constexpr std::size_t copies = 16;
    static constexpr std::size_t copy_bytes = 16 * 1024;

    alignas(128) control_line farewell; ///< the peer's last word
    // This rank's messages taken by the peer: its credit, read only when what came with messages is used up.
    alignas(128) std::atomic<std::uint64_t> cells_taken{0};
    std::atomic<std::uint64_t> slots_taken{0};
    cell_ring ring;
    message_slot slot[slots]; ///< one numbering covers both: the next message is in one of two places
};

/// By this a rank finds out that a peer has no room left for its next message, while it has nothing under way itself.
/// One line for all peers, so that looking at it costs little.
class alignas(128) message_bell {
  public:
    /// To be called after each attempt that found no room: if one is answered too early, the next rings again.
    void ring() noexcept {
        if (rung_.load(std::memory_order_relaxed) == 0) rung_.store(1, std::memory_order_release);
    }
    /// Has it been rung since the last answer?
    [[nodiscard]] bool answer() noexcept {
        if (rung_.load(std::memory_order_acquire) == 0) return false;
        rung_.store(0, std::memory_order_relaxed);
        return true;
    }

  private:
    std::atomic<std::uint64_t> rung_{0};
};

/// A rank's large sends to one peer, and what it copies for them: pieces of sends that the peer can't read, and whole
/// sends. It takes memory only once it is used, and holds nothing before that: a record is made for its first send.
struct outbox {
    static constexpr std::uint32_t records = messenger_options::most_large;
    send_record record[records];
    std::byte staging[link_layout::staging_pieces][link_layout::staging_bytes];
    std::byte copy[link_layout::copies][link_layout::copy_bytes];
};
/// Piece number `piece` of a staged message.
inline std::byte* staged_piece(outbox& box, std::uint64_t piece) {
    return box.staging[piece % link_layout::staging_pieces];
}

} // namespace halocline::comm
