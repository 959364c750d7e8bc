// SPDX-License-Identifier: Apache-2.0
#include "message_ring.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace halocline::comm {
namespace {

constexpr std::size_t in_cell = sizeof message_cell::payload;

/// Brings a line to this core for writing, while it does something else. Nothing is stored, unlike in claim_lines():
/// the message that is there may not have been taken yet.
void prefetch_for_writing(const payload_line& line) noexcept {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(line));
#else
    __builtin_prefetch(&line, 1);
#endif
}

/// A part of a payload line; most are whole, for which the size is known here.
void copy_part(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    constexpr std::size_t whole = sizeof payload_line::part;
    if (bytes == whole)
        std::memcpy(to, from, whole);
    else
        std::memcpy(to, from, bytes);
}

/// All but the payload, which is there already. The number goes last: it is the flag.
void publish(message_cell& cell, std::uint64_t number, std::size_t bytes, int tag, std::uint32_t context) noexcept {
    cell.tag = tag;
    cell.context = context;
    cell.bytes = bytes;
    cell.number.store(number, std::memory_order_release);
}

} // namespace

message_cell* ring_writer::free_cell() noexcept {
    if (cells_sent_ - cells_taken_ == cell_ring::size) {
        cells_taken_ = credit_->cells_taken.load(std::memory_order_acquire);
        if (cells_sent_ - cells_taken_ == cell_ring::size) return nullptr;
    }
    return &ring_->of(cells_sent_);
}

message_slot* ring_writer::free_slot() noexcept {
    if (slots_sent_ - slots_taken_ == link_layout::slots) {
        slots_taken_ = credit_->slots_taken.load(std::memory_order_acquire);
        if (slots_sent_ - slots_taken_ == link_layout::slots) return nullptr;
    }
    return &slots_[slots_sent_ % link_layout::slots];
}

bool ring_writer::send(std::span<const std::byte> data, int tag, std::uint32_t context) noexcept {
    const std::byte* from = data.data();
    std::size_t left = data.size();
    if (left <= in_cell) {
        message_cell* const cell = free_cell();
        if (cell == nullptr) return false;
        if (left > 0) std::memcpy(cell->payload, from, left);
        publish(*cell, cells_sent_++ + slots_sent_ + 1, left, tag, context);
        return true;
    }
    message_slot* const slot = free_slot();
    if (slot == nullptr) return false;
    const std::uint64_t number = cells_sent_ + ++slots_sent_;
    std::memcpy(slot->cell.payload, from, in_cell);
    publish(slot->cell, number, left, tag, context);
    from += in_cell;
    left -= in_cell;
    std::size_t lines = 0;
    for (; left > 0; ++lines) {
        payload_line& line = slot->line(lines);
        const std::size_t n = std::min(left, sizeof line.part);
        copy_part(line.part, from, n);
        line.number.store(number, std::memory_order_release);
        from += n;
        left -= n;
    }
    // The next message often has this one's size. Not its cell: the reader is polling that one.
    const message_slot& next = slots_[slots_sent_ % link_layout::slots];
    for (std::size_t i = 0; i < lines; ++i) prefetch_for_writing(next.line(i));
    return true;
}

void ring_writer::announce(const announcement& a, std::uint64_t bytes, int tag, std::uint32_t context) noexcept {
    message_cell& cell = ring_->of(cells_sent_);
    std::memcpy(cell.payload, &a, sizeof a);
    publish(cell, cells_sent_++ + slots_sent_ + 1, bytes, tag, context);
}

bool copy_payload(std::byte* to, const message_slot& slot, std::uint64_t bytes) noexcept {
    constexpr std::uint32_t patience = 100; // polls, about a microsecond
    const std::uint64_t number = slot.cell.number.load(std::memory_order_relaxed);
    std::memcpy(to, slot.cell.payload, in_cell);
    std::size_t at = in_cell;
    for (std::size_t i = 0; at < bytes; ++i) {
        const payload_line& line = slot.line(i);
        for (std::uint32_t polls = 0; line.number.load(std::memory_order_acquire) != number; ++polls)
            if (polls == patience) return false;
        const std::size_t n = std::min<std::size_t>(bytes - at, sizeof line.part);
        copy_part(to + at, line.part, n);
        at += n;
    }
    return true;
}

} // namespace halocline::comm
