// SPDX-License-Identifier: Apache-2.0
#include "message_ring.hpp"

#include <halocline/comm/detail/copy_bytes.hpp>
#include <halocline/comm/detail/prefetch.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>

namespace halocline::comm {
namespace {

constexpr std::size_t in_line = message_slot::line_bytes;

std::size_t lines_of(std::size_t bytes) noexcept { return (bytes + in_line - 1) / in_line; }

/// Calls copy(offset in the message, line, bytes) for each line of a slot, with `bytes` a compile-time constant for all
/// but the last.
template <class Slot, class Copy>
void for_each_line(Slot& slot, std::size_t bytes, Copy&& copy) noexcept {
    std::size_t at = 0, i = 0;
    for (; at + in_line <= bytes; at += in_line) copy(at, slot.line(i++), in_line);
    if (at < bytes) copy(at, slot.line(i), bytes - at);
}

/// Stores everything but the payload, which is there already. The number goes last: it is the flag.
void publish(message_cell& cell, std::uint64_t number, std::uint32_t bytes, ring_writer::label l) noexcept {
    cell.tag = l.tag;
    cell.context = l.context;
    cell.bytes = bytes;
    cell.slots_taken = static_cast<std::uint32_t>(l.slots_taken);
    cell.number.store(number, std::memory_order_release);
}

} // namespace

bool ring_writer::look_for_cells() noexcept {
    cells_taken_ = credit_->cells_taken.load(std::memory_order_acquire);
    return cells_sent_ - cells_taken_ < cell_ring::size;
}

bool ring_writer::look_for_slots() noexcept {
    slots_taken_ = std::max(slots_taken_, credit_->slots_taken.load(std::memory_order_acquire));
    return slots_sent_ - slots_taken_ < link_layout::slots;
}

bool ring_writer::send(std::span<const std::byte> data, label l) noexcept {
    const std::size_t bytes = data.size();
    if (bytes <= ring_cell::line_bytes) {
        ring_cell* const cell = free_cell();
        if (cell == nullptr) return false;
        copy_line(cell->place_of(bytes), data.data(), bytes);
        publish(*cell, cells_sent_++ + slots_sent_ + 1, static_cast<std::uint32_t>(bytes), l);
        return true;
    }
    message_slot* const slot = free_slot();
    if (slot == nullptr) return false;
    const bool moved = slot_order_.in_one_piece(bytes);
    if (moved)
        move_bytes(slot->in_one_piece(), data.data(), bytes);
    else
        for_each_line(*slot, bytes,
                      [&](std::size_t at, std::byte* line, std::size_t n) { copy_line(line, data.data() + at, n); });
    publish(slot->cell, cells_sent_ + ++slots_sent_, static_cast<std::uint32_t>(bytes), l);
    if (moved) return true;
    // The next message often has the same size. Its cell is left alone: the reader is polling that one.
    const message_slot& next = slots_[slots_sent_ % link_layout::slots];
    for (std::size_t i = 0; i < lines_of(bytes); ++i) prefetch_for_writing(next.line(i));
    return true;
}

void ring_writer::publish_announced(label l, std::uint32_t kind) noexcept {
    message_cell& cell = ring_->of(cells_sent_);
    publish(cell, cells_sent_++ + slots_sent_ + 1, kind, l);
}

void ring_reader::prefetch(const message_slot& slot, std::size_t bytes) const noexcept {
    __builtin_prefetch(&slot.cell);
    prefetch_payload(slot, bytes);
}

void ring_reader::prefetch_payload(const message_slot& slot, std::size_t bytes) const noexcept {
    if (slot_order_.in_one_piece(bytes))
        for (std::size_t at = 0; at < bytes; at += in_line) __builtin_prefetch(slot.in_one_piece() + at);
    else
        for (std::size_t i = 0; i < lines_of(bytes); ++i) __builtin_prefetch(slot.line(i));
}

void ring_reader::copy_from_slot(std::byte* to, const message_slot& slot, std::size_t bytes) const noexcept {
    prefetch_payload(slot, bytes);
    if (slot_order_.in_one_piece(bytes)) {
        std::memcpy(to, slot.in_one_piece(), bytes);
        return;
    }
    for_each_line(slot, bytes,
                  [&](std::size_t at, const std::byte* line, std::size_t n) { copy_line(to + at, line, n); });
}

} // namespace halocline::comm
