// SPDX-License-Identifier: Apache-2.0
#include "shm_outgoing.hpp"

#include <halocline/comm/clock.hpp>
#include <halocline/comm/detail/prefetch.hpp>
#include <halocline/comm/detail/shared_copy.hpp>
#include <halocline/comm/detail/stream_bytes.hpp>
#include <halocline/comm/detail/take_line.hpp>

#include <algorithm>
#include <new>

namespace halocline::comm {
namespace {

/// Largest copy whose place is fetched ahead: 8 KiB would take a fifth longer.
constexpr std::size_t most_prefetched = 4096;

} // namespace

shm_outgoing::shm_outgoing(messenger_core& core, int peer, message_place own, const peer_memory& memory,
                           const sending_policy& policy)
    : core_(core), peer_(peer), memory_(memory), policy_(policy), outbox_(own.box), free_(outbox::records) {
    withdrawn_.reserve(outbox::records); // so that withdrawals don't allocate
}

announcement shm_outgoing::announce(message_operation& s) noexcept {
    announcement a{.bytes = s.bytes, .place = place_of(core_.job, s.data)};
    a.record = s.record = free_.take();
    a.generation = s.near.generation = ++generation_;
    s.near.pieces_done = 0;
    s.piece_was_refused = false;
    send_record& record = outbox_->record[a.record];
    if (a.record == records_used_) { // they are first taken in their order
        new (&record) send_record;
        ++records_used_;
    }
    record.own_generation = a.generation;
    record.sender_pieces.store(0, std::memory_order_relaxed);
    record.staged.store(0, std::memory_order_relaxed);
    s.state = operation_state::announced;
    announced_.push(s);
    return a;
}

bool shm_outgoing::take_received(message_operation& s) noexcept {
    if (outbox_->record[s.record].phase_of(s.near.generation) != send_record::received) return false;
    announced_.remove(s);
    give_back(s.record);
    s.finish();
    return true;
}

message_operation* shm_outgoing::copy(const message_operation& s) noexcept {
    static_assert(most_copied <= 2 * link_layout::copy_bytes && link_layout::copies % 2 == 0);
    const bool is_long = s.bytes > link_layout::copy_bytes;
    const std::size_t first = is_long ? (next_copy_ + 1) / 2 * 2 % link_layout::copies : next_copy_;
    message_operation& copy = copies_[first];
    if (!copy.done() && !take_received(copy)) return nullptr;
    if (is_long) {
        message_operation& second = copies_[first + 1];
        if (!second.done() && !take_received(second)) return nullptr;
        second.bytes = second_place;
    }
    if (const std::uint64_t now = ticks(); policy_.is_look_due(now)) look_at_copies(now);
    copy.data = outbox_->copy[first];
    copy.peer = peer_;
    copy.bytes = s.bytes;
    next_copy_ = (first + (is_long ? 2 : 1)) % link_layout::copies;
    ++core_.counts.copied;
    if (policy_.fill(copy.data, s.data, s.bytes)) {
        ++core_.counts.copied_past;
    } else if (!policy_.moves() && s.bytes <= most_prefetched && copies_[next_copy_].bytes > 0) {
        // The next message often has the same size. Not the first time, which would touch new pages.
        for (std::size_t at = 0; at < s.bytes; at += 64) prefetch_for_writing(outbox_->copy[next_copy_] + at);
    }
    // Its receiver has probably read the next place long ago, and said so in this line.
    if (const message_operation& next = copies_[next_copy_]; !next.done())
        __builtin_prefetch(&outbox_->record[next.record].receiver);
    return &copy;
}

// An older one may have left the receiver's cache: then the cores would look far apart.
void shm_outgoing::look_at_copies(std::uint64_t now) noexcept {
    for (std::size_t back = 1; back < link_layout::copies; ++back) {
        message_operation& copy = copies_[(next_copy_ + link_layout::copies - back) % link_layout::copies];
        if (copy.bytes == second_place) continue;
        if (copy.bytes == 0) return; // it and those before it were looked at, or are unused
        if (!copy.done() && !take_received(copy)) continue;
        policy_.looked(ticks_to_take(copy.data + copy.bytes / 2), now);
        copy.bytes = 0; // the line is here now
        return;
    }
}

void shm_outgoing::advance(message_operation& s) noexcept {
    if (take_received(s)) return;
    send_record& record = outbox_->record[s.record];
    switch (const send_record::phase now = record.phase_of(s.near.generation)) {
    case send_record::announced:
    case send_record::received: break; // the next time
    case send_record::shared:
    case send_record::pushed: help_copy(s, record, now == send_record::pushed); break;
    case send_record::wants_staging:
        if (staging_ == no_record) staging_ = s.record; // there is one staging area per peer; others wait
        if (staging_ == s.record) stage(s, record);
        break;
    }
}

void shm_outgoing::help_copy(message_operation& s, send_record& record, bool pushed) noexcept {
    if (record.next.load(std::memory_order_relaxed) >= pieces_of(s.bytes)) return;
    const peer_buffer target = memory_.at(record.receiver.target);
    if (!target.is_reachable()) return; // its receiver copies all
    const std::uint64_t copied = copy_pieces(record.next, s.bytes, [&](std::uint64_t start, std::uint64_t n) {
        if (pushed)
            policy_.push(target.mapped() + start, s.data + start, n);
        else if (!target.write(start, s.data + start, n))
            s.piece_was_refused = true;
    });
    if (copied == 0) return;
    finish_streams();
    s.near.pieces_done += copied;
    core_.counts.pieces_sent += copied;
    record.sender_pieces.store(s.near.pieces_done | (s.piece_was_refused ? send_record::refused : 0),
                               std::memory_order_release);
}

void shm_outgoing::stage(message_operation& s, send_record& record) noexcept {
    constexpr std::uint64_t piece = link_layout::staging_bytes, pieces = link_layout::staging_pieces;
    std::uint64_t staged = record.staged.load(std::memory_order_relaxed);
    if (staged == 0) record.next.store(1, std::memory_order_relaxed);
    while (staged < pieces_of(s.bytes, piece) &&
           staged < record.receiver.read.load(std::memory_order_acquire) + pieces) {
        const std::uint64_t start = staged * piece, n = std::min(piece, s.bytes - start);
        std::byte* const place = staged_piece(*outbox_, staged);
        // A line that the receiver has not read would look as if it were near, or time a page fault; one that it read
        // long ago as if it were far, which does no harm where only streaming follows.
        if (!policy_.moves() && n == piece && whole_pieces_staged_ == pieces)
            if (const std::uint64_t now = ticks(); policy_.is_look_due(now))
                policy_.looked(ticks_to_take(place + n / 2), now);
        policy_.fill(place, s.data + start, n);
        if (n == piece) whole_pieces_staged_ = std::min(whole_pieces_staged_ + 1, pieces);
        record.staged.store(++staged, std::memory_order_release);
        core_.moved.note(peer_);
    }
}

/// Its record and what it has staged are left to its receiver, which may still read both.
void shm_outgoing::withdraw(message_operation& s) noexcept {
    announced_.remove(s);
    withdrawn_.push_back({s.record, false});
    ++untold_;
    ++core_.owner.under_way;
    mark_withdrawn(s);
}

// A receiver that reads this process's memory continues; one that needs staged copies would wait forever.
void shm_outgoing::mark_withdrawn(const message_operation& s) noexcept {
    outbox_->record[s.record].sender_pieces.fetch_or(send_record::withdrawn, std::memory_order_release);
}

announcement shm_outgoing::take_untold() noexcept {
    withdrawn_send& s = *std::ranges::find(withdrawn_, false, &withdrawn_send::is_told);
    s.is_told = true;
    --untold_;
    --core_.owner.under_way;
    announcement a;
    a.generation = outbox_->record[s.record].own_generation;
    a.record = s.record;
    return a;
}

void shm_outgoing::take_back_withdrawn() noexcept {
    std::erase_if(withdrawn_, [this](const withdrawn_send& s) {
        const send_record& record = outbox_->record[s.record];
        if (record.phase_of(record.own_generation) != send_record::received) return false;
        if (!s.is_told) {
            --untold_;
            --core_.owner.under_way;
        }
        give_back(s.record);
        return true;
    });
}

void shm_outgoing::abandon() noexcept {
    announced_.for_each([this](const message_operation& s) {
        // Copies stay where they are until the peer has left, too.
        if (std::ranges::none_of(copies_, [&](const message_operation& copy) { return &copy == &s; }))
            mark_withdrawn(s);
    });
    announced_.finish_all();
}

} // namespace halocline::comm
