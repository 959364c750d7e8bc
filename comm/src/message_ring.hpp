// SPDX-License-Identifier: Apache-2.0
// The two ends of the messages from one rank to another that shares its memory: a stream, numbered from 1. A short
// message lies in the next cell of a ring, a longer one in the next of a few slots (message_layout.hpp), so its reader
// looks at both. How much has been taken comes back to the writer as its credit.
#pragma once

#include "message_layout.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace halocline::comm {

class ring_writer {
  public:
    ring_writer() = default;
    /// `there` is this rank's link in the reader's block; `here` the reader's in this rank's, where credit comes.
    ring_writer(link_layout& there, const link_layout& here) : ring_(&there.ring), slots_(there.slot), credit_(&here) {}

    /// Sends a message with its bytes, at most messenger_options::largest_immediate.
    /// False: the reader has not taken enough yet.
    [[nodiscard]] bool send(std::span<const std::byte> data, int tag, std::uint32_t context) noexcept;
    /// Is there room for an announcement?
    [[nodiscard]] bool has_cell() noexcept { return free_cell() != nullptr; }
    /// Says that a message of so many bytes can be fetched.  Pre: has_cell().
    void announce(const announcement& a, std::uint64_t bytes, int tag, std::uint32_t context) noexcept;

  private:
    /// nullptr: the reader has not taken enough yet.
    message_cell* free_cell() noexcept;
    message_slot* free_slot() noexcept;

    cell_ring* ring_ = nullptr;
    message_slot* slots_ = nullptr;
    const link_layout* credit_ = nullptr;
    std::uint64_t cells_sent_ = 0, slots_sent_ = 0;
    std::uint64_t cells_taken_ = 0, slots_taken_ = 0; ///< by the reader, as last seen
};

class ring_reader {
  public:
    ring_reader() = default;
    /// `here` is the writer's link in this rank's block; `there` this rank's in the writer's, where its credit goes.
    ring_reader(const link_layout& here, link_layout& there) : ring_(&here.ring), slots_(here.slot), credit_(&there) {}

    [[nodiscard]] bool is_open() const noexcept { return ring_ != nullptr; }
    /// Where the next message lies.
    struct place {
        const message_cell* cell = nullptr; ///< nullptr: none has come
        const message_slot* slot = nullptr; ///< whose cell it is; nullptr: the ring's
    };
    [[nodiscard]] place next() const noexcept {
        const std::uint64_t number = cells_taken_ + slots_taken_ + 1;
        const message_cell& cell = ring_->of(cells_taken_);
        if (cell.number.load(std::memory_order_acquire) == number) return {&cell, nullptr};
        const message_slot& slot = slots_[slots_taken_ % link_layout::slots];
        if (slot.cell.number.load(std::memory_order_acquire) == number) return {&slot.cell, &slot};
        return {};
    }
    /// What lies there has been copied: the place is the writer's again.  Pre: p is next().
    void take(place p) noexcept {
        if (p.slot != nullptr)
            credit_->slots_taken.store(++slots_taken_, std::memory_order_release);
        else if (++cells_taken_ % (cell_ring::size / 4) == 0) // seldom: the credit's line moves between cores
            credit_->cells_taken.store(cells_taken_, std::memory_order_release);
    }

  private:
    const cell_ring* ring_ = nullptr;
    const message_slot* slots_ = nullptr;
    link_layout* credit_ = nullptr;
    std::uint64_t cells_taken_ = 0, slots_taken_ = 0;
};

/// Copies the payload of a message in a slot, line by line as they come: who looked for the last line first would take
/// lines away from the sender that fills them.  False: the sender was interrupted; try again later.
[[nodiscard]] bool copy_payload(std::byte* to, const message_slot& slot, std::uint64_t bytes) noexcept;

} // namespace halocline::comm
