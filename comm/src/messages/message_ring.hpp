// SPDX-License-Identifier: Apache-2.0
// The two ends of the messages from one rank to another that shares its memory: a stream, numbered from 1. A short
// message lies in the next cell of a ring, a longer one in the next of a few slots (message_layout.hpp), so its reader
// polls both. The number taken is returned to the writer as its credit.
#pragma once

#include "message_layout.hpp"
#include "node/short_copy.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

namespace halocline::comm {

/// How payloads lie in slots.
class slot_order {
  public:
    slot_order() = default;
    explicit slot_order(bool moves) : moves_(moves) {}
    /// Is a payload of this size moved in one piece? On some processors (message_place::in_one_piece) that is quicker
    /// than stores into lines, even into lines that were fetched ahead.
    [[nodiscard]] bool in_one_piece(std::size_t bytes) const noexcept {
        constexpr std::size_t most_in_lines = 512;
        return moves_ && bytes > most_in_lines;
    }

  private:
    bool moves_ = false;
};

class ring_writer {
  public:
    ring_writer() = default;
    /// `there` is this rank's link in the reader's block; `here` the reader's in this rank's, where credit arrives.
    /// `moves`: message_place::in_one_piece.
    ring_writer(link_layout& there, const link_layout& here, bool moves)
        : ring_(&there.ring), slots_(there.slot), credit_(&here), slot_order_(moves) {}

    /// What a cell holds besides its payload.
    struct label {
        int tag = 0;
        std::uint32_t context = 0;
        std::uint64_t slots_taken = 0; ///< ring_reader::slots_taken() of the other direction
    };
    /// Sends a message with its bytes, at most messenger_options::largest_immediate.
    /// False: the reader has not taken enough yet.
    [[nodiscard]] bool send(std::span<const std::byte> data, label l) noexcept;
    /// Is there room for an announcement?
    [[nodiscard]] bool has_cell() noexcept { return free_cell() != nullptr; }
    /// Announces that a large message can be fetched, or withdraws the announcement, which make() returns.
    /// It is made in the cell: if it were copied there by wider loads than it was stored with, they would wait for all
    /// stores before it, often a whole message on its way to another core. For the same reason the label comes in
    /// registers.  Pre: has_cell().
    template <class Make>
    void announce(Make&& make, label l, std::uint32_t kind = message_cell::announced) noexcept {
        ::new (ring_->of(cells_sent_).payload) announcement(make());
        publish_announced(l, kind);
    }
    /// A message from the reader states how many slots it has taken, modulo 2^32; possibly older than what is known.
    void credit(std::uint32_t slots_taken) noexcept {
        const auto more = static_cast<std::int32_t>(slots_taken - static_cast<std::uint32_t>(slots_taken_));
        // More than were sent: the statement is older than 2^31 messages.
        if (more > 0 && static_cast<std::uint64_t>(more) <= slots_sent_ - slots_taken_)
            slots_taken_ += static_cast<std::uint32_t>(more);
    }

  private:
    /// The rest of announce().
    void publish_announced(label l, std::uint32_t kind) noexcept;
    /// nullptr: the reader has not taken enough yet.
    ring_cell* free_cell() noexcept {
        return cells_sent_ - cells_taken_ < cell_ring::size || look_for_cells() ? &ring_->of(cells_sent_) : nullptr;
    }
    message_slot* free_slot() noexcept {
        return slots_sent_ - slots_taken_ < link_layout::slots || look_for_slots()
                   ? &slots_[slots_sent_ % link_layout::slots]
                   : nullptr;
    }
    /// Has the reader taken more than was reported with its messages? Fetches a line from the reader's core.
    bool look_for_cells() noexcept;
    bool look_for_slots() noexcept;

    cell_ring* ring_ = nullptr;
    message_slot* slots_ = nullptr;
    const link_layout* credit_ = nullptr;
    slot_order slot_order_;
    std::uint64_t cells_sent_ = 0, slots_sent_ = 0;
    std::uint64_t cells_taken_ = 0, slots_taken_ = 0; ///< by the reader, as last seen
};

class ring_reader {
  public:
    ring_reader() = default;
    /// `here` is the writer's link in this rank's block; `there` this rank's in the writer's, where its credit goes;
    /// `moves`: the writer's.
    ring_reader(const link_layout& here, link_layout& there, bool moves)
        : ring_(&here.ring), slots_(here.slot), credit_(&there), slot_order_(moves) {}

    /// Where the next message lies.
    struct place {
        const message_cell* cell = nullptr;
        const message_slot* slot = nullptr; ///< the slot that the cell belongs to; nullptr: it is in the ring
        /// Pre: it is.
        [[nodiscard]] const ring_cell& in_ring() const noexcept { return static_cast<const ring_cell&>(*cell); }
    };
    enum class arrival { none, in_cell, in_slot };
    /// The two places where the next message may arrive, looked up once for many polls.
    class awaited {
      public:
        awaited(const ring_cell& cell, const message_slot& slot, std::uint64_t number)
            : cell_(&cell), slot_(&slot), number_(number) {}
        [[nodiscard]] arrival look() const noexcept {
            const bool in_cell = cell_->number.load(std::memory_order_acquire) == number_,
                       in_slot = slot_->cell.number.load(std::memory_order_acquire) == number_;
            if (!(in_cell | in_slot)) return arrival::none; // one branch, which the core predicts
            return in_cell ? arrival::in_cell : arrival::in_slot;
        }
        [[nodiscard]] place cell() const noexcept { return {cell_, nullptr}; }
        [[nodiscard]] place slot() const noexcept { return {&slot_->cell, slot_}; }

      private:
        const ring_cell* cell_;
        const message_slot* slot_;
        std::uint64_t number_;
    };
    [[nodiscard]] awaited await() const noexcept {
        return {ring_->of(cells_taken_), slots_[slots_taken_ % link_layout::slots], cells_taken_ + slots_taken_ + 1};
    }
    /// Has the message arrived, too, that comes after this one?  Pre: p is where the next one has arrived.
    [[nodiscard]] bool has_another_behind(place p) const noexcept {
        const std::uint64_t slot = p.slot != nullptr ? 1 : 0;
        const awaited another(ring_->of(cells_taken_ + 1 - slot), slots_[(slots_taken_ + slot) % link_layout::slots],
                              taken() + 2);
        return another.look() != arrival::none;
    }
    /// Copies the payload of an immediate message from where it lies. By branches, which the core predicts: it would
    /// wait for an address that depends on what has arrived.
    [[gnu::always_inline]] void copy(std::byte* to, place from, std::size_t bytes) const noexcept {
        if (from.slot != nullptr)
            copy_from_slot(to, *from.slot, bytes);
        else if (bytes <= sizeof from.cell->payload)
            copy_line(to, from.cell->payload, bytes);
        else
            copy_line(to, from.in_ring().line, bytes);
    }
    [[nodiscard]] std::uint64_t slots_taken() const noexcept { return slots_taken_; }
    [[nodiscard]] std::uint64_t taken() const noexcept { return cells_taken_ + slots_taken_; }
    /// The message there has been copied: the place is the writer's again.  Pre: as of has_another_behind().
    void take(place p) noexcept {
        if (p.slot != nullptr)
            credit_->slots_taken.store(++slots_taken_, std::memory_order_release);
        else if (++cells_taken_ % (cell_ring::size / 4) == 0) // seldom, because the credit's line moves between cores
            credit_->cells_taken.store(cells_taken_, std::memory_order_release);
    }

    /// The next message has arrived, in that place; `at_once`: it was there before this rank looked for it. After two of
    /// these more are probably there, and are fetched while this one is handled. Otherwise their lines are left to the
    /// writer, which may be about to fill them.
    void look_ahead(place p, bool at_once) noexcept {
        at_once_ = at_once ? at_once_ + 1 : 0;
        if (at_once_ < 2) return;
        if (p.slot != nullptr)
            prefetch(slots_[(slots_taken_ + 1) % link_layout::slots], p.cell->bytes);
        else
            prefetch(ring_->of(cells_taken_ + cells_ahead), p.cell->bytes);
    }

  private:
    static constexpr std::uint64_t cells_ahead = 4;
    /// Begins to fetch a message of that size.
    static void prefetch(const ring_cell& cell, std::size_t bytes) noexcept {
        __builtin_prefetch(&cell);
        if (bytes > sizeof cell.payload && bytes <= sizeof cell.line) __builtin_prefetch(cell.line);
    }
    void prefetch(const message_slot& slot, std::size_t bytes) const noexcept;
    void prefetch_payload(const message_slot& slot, std::size_t bytes) const noexcept;
    void copy_from_slot(std::byte* to, const message_slot& slot, std::size_t bytes) const noexcept;

    const cell_ring* ring_ = nullptr;
    const message_slot* slots_ = nullptr;
    link_layout* credit_ = nullptr;
    slot_order slot_order_;
    std::uint64_t cells_taken_ = 0, slots_taken_ = 0;
    std::uint64_t at_once_ = 0; ///< consecutive messages that were there at once
};

} // namespace halocline::comm
