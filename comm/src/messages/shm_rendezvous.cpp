// SPDX-License-Identifier: Apache-2.0
#include "shm_rendezvous.hpp"

#include "job/waiting.hpp"
#include "node/copy_claimed.hpp"

#include <halocline/comm/detail/prefetch.hpp>
#include <halocline/comm/detail/shared_copy.hpp>
#include <halocline/comm/detail/stream_bytes.hpp>
#include <halocline/comm/detail/take_line.hpp>

#include <algorithm>
#include <sched.h>
#include <utility>

namespace halocline::comm {
namespace {

/// How many polls a receiver waits for its sender to begin: a microsecond.
constexpr std::uint32_t patience = 100;
/// In seconds, for a sender that waits for a processor.
constexpr double longest_piece = 0.1;
/// Largest copy whose place is fetched ahead: 8 KiB would take a fifth longer.
constexpr std::size_t most_prefetched = 4096;

streaming_watch watch_of(path wish, const costs& c, std::size_t bytes) {
    return {c, bytes, streaming_pays(wish, c, bytes)};
}

} // namespace

// What is not pushed is pulled. Copies follow one size in the middle of theirs. In a stream, smaller ones gain more
// than the costs promise, which are of messages that come one by one.
message_streams::message_streams(path wish, const costs& c)
    : moved(leaves_streaming(wish) && c.moves_skip_waits), pushed(watch_of(wish, c.of_pulled(), least_pushed)),
      copied(moved ? streaming_watch::of_distance(c) : watch_of(wish, c, link_layout::copy_bytes / 2)),
      claims_pay(c.claims_pay()) {}

shm_rendezvous::shm_rendezvous(messenger_core& core, int peer, message_place own, message_place theirs,
                               const peer_memory& memory, const message_streams& streams)
    : core_(core), peer_(peer), memory_(memory), records_(own.link->record), outbox_(own.box),
      their_records_(theirs.link->record), their_outbox_(theirs.box), streams_(streams),
      least_shared_(
          std::min({core.options.synergistic_bytes, core.options.streamed_bytes, message_streams::least_pushed})) {}

announcement shm_rendezvous::announce(message_operation& s) noexcept {
    announcement a{.bytes = s.bytes, .place = place_of(core_.job, s.data)};
    a.record = s.record = free_.take();
    a.generation = s.near.generation = ++generation_;
    s.near.pieces_done = 0;
    s.piece_was_refused = false;
    records_[a.record].sender_pieces.store(0, std::memory_order_relaxed);
    records_[a.record].staged.store(0, std::memory_order_relaxed);
    s.state = operation_state::announced;
    announced_.push(s);
    return a;
}

message_operation* shm_rendezvous::copy(const message_operation& s) noexcept {
    message_operation& copy = copies_[next_copy_];
    if (!copy.done() && !take_received(copy)) return nullptr;
    if (const std::uint64_t now = ticks(); streams_.copied.due(now)) look_at_copies(now);
    copy.data = outbox_->copy[next_copy_];
    copy.peer = peer_;
    copy.bytes = s.bytes;
    next_copy_ = (next_copy_ + 1) % link_layout::copies;
    ++core_.counts.copied;
    if (fill(copy.data, s.data, s.bytes)) {
        ++core_.counts.copied_past;
    } else if (!streams_.moved && s.bytes <= most_prefetched && copies_[next_copy_].bytes > 0) {
        // The next message often has the same size. Not the first time, which would touch new pages. Moves replace
        // lines without fetching them.
        for (std::size_t at = 0; at < s.bytes; at += 64) prefetch_for_writing(outbox_->copy[next_copy_] + at);
    }
    // Its receiver has probably read the next place long ago, and said so in this line.
    if (const message_operation& next = copies_[next_copy_]; !next.done())
        __builtin_prefetch(&records_[next.record].receiver);
    return &copy;
}

// An older one may have left the receiver's cache: then the cores would look far apart.
void shm_rendezvous::look_at_copies(std::uint64_t now) noexcept {
    for (std::size_t back = 1; back < link_layout::copies; ++back) {
        message_operation& copy = copies_[(next_copy_ + link_layout::copies - back) % link_layout::copies];
        if (copy.bytes == 0) return; // it and those before it were looked at, or are unused
        if (!copy.done() && !take_received(copy)) continue;
        streams_.copied.read(ticks_to_take(copy.data + copy.bytes / 2), now);
        copy.bytes = 0; // the line is here now
        return;
    }
}

bool shm_rendezvous::fill(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    if (bytes >= message_streams::least_copied && streams_.copied.streamed() && !streams_.moved) {
        stream_bytes(to, from, bytes);
        finish_streams();
        return true;
    }
    if (streams_.claims_pay)
        copy_claimed(to, from, bytes);
    else
        copy_bytes(to, from, bytes);
    return false;
}

void shm_rendezvous::receive(message_operation& r, std::uint64_t bytes, const announcement& a) noexcept {
    r.peer = peer_;
    r.record = a.record;
    r.near.generation = a.generation;
    r.near.pieces_done = 0;
    r.fruitless_polls = 0;
    r.near.fallback_source = nullptr;
    r.piece_was_refused = false;
    send_record& record = their_records_[a.record];
    const peer_buffer source = memory_.at(a.place);
    look_for_sender(record, bytes);
    if (share_copy(r, record, source, bytes)) {
        ++core_.counts.synergistic;
    } else if (source.is_reachable() && source.mapped() == nullptr && streams_.staging_pays(bytes)) {
        // Reading would bring all lines of the source here, and later back to the sender's core, or take longer than
        // two copies that are moved.
        r.near.fallback_source = reinterpret_cast<const std::byte*>(a.place.address);
        record.next.store(0, std::memory_order_relaxed);
        ask_for_staging(r, record);
    } else if (bytes == 0 || source.read(r.data, 0, bytes)) {
        ++core_.counts.direct;
        record.set(a.generation, send_record::received);
        r.finish();
    } else {
        ask_for_staging(r, record);
    }
    if (r.state != operation_state::staged && source.mapped() == nullptr) ++core_.counts.read;
    if (r.done()) return;
    receiving_.push(r); // the sender has yet to do its part
    advance_receive(r);
}

bool shm_rendezvous::try_receive_alone(std::byte* into, const announcement& a) noexcept {
    const std::byte* const source = memory_.at(a.place).mapped();
    if (a.bytes >= least_shared_ || source == nullptr) return false;
    copy_bytes(into, source, a.bytes);
    their_records_[a.record].set(a.generation, send_record::received);
    ++core_.counts.direct;
    return true;
}

void shm_rendezvous::ask_for_staging(message_operation& r, send_record& record) noexcept {
    r.near.pieces_done = 0;
    record.receiver.read.store(0, std::memory_order_relaxed);
    record.set(r.near.generation, send_record::wants_staging);
    ++core_.counts.staged;
    r.state = operation_state::staged;
}

/// Measures how far away the sender is, seldom and only for messages that might be pushed.
void shm_rendezvous::look_for_sender(send_record& record, std::uint64_t bytes) noexcept {
    if (bytes < message_streams::least_pushed) return;
    const std::uint64_t now = ticks();
    if (!streams_.pushed.due(now)) return;
    // Touches the page first, so that only the time for the line is measured.
    (void)record.next.load(std::memory_order_relaxed);
    streams_.pushed.read(ticks_to_take(&record.receiver.looked_at), now);
}

bool shm_rendezvous::wants_push(std::uint64_t bytes) const noexcept {
    // Near, a large message in one direction takes two thirds of the time if both ends copy.
    const bool moved = streams_.moved && (!announced_.empty() || bytes < core_.options.synergistic_bytes);
    return (bytes >= message_streams::least_pushed && (moved || streams_.pushed.streamed())) ||
           (bytes >= core_.options.streamed_bytes && !announced_.empty() && core_.job.options.path != path::direct &&
            core_.job.options.path != path::joint);
}

bool shm_rendezvous::share_copy(message_operation& r, send_record& record, const peer_buffer& source,
                                std::uint64_t bytes) noexcept {
    // Not a message that is too long: its sender would copy all that it announced.
    if (bytes == 0 || !source.is_reachable()) return false;
    const bool mapped = source.mapped() != nullptr && is_mapped_there(r.data);
    const bool push = mapped && wants_push(bytes);
    // The kernel writes through the sender's cache. Where that is slow enough for messages to be streamed past it, the
    // receiver is sooner done alone.
    if (!mapped && streams_.pushed.streamed()) return false;
    if (source.mapped() == nullptr && streams_.staging_pays(bytes)) return false;
    // If this rank sends to the peer, too, the peer is already copying.
    if (!push && (bytes < core_.options.synergistic_bytes || !announced_.empty())) return false;
    record.receiver.target = place_of(core_.job, r.data);
    record.next.store(0, std::memory_order_relaxed);
    // Last, with release: a sender that sees the phase also sees the target, and that no piece is taken.
    record.set(r.near.generation, push ? send_record::pushed : send_record::shared);
    r.state = operation_state::synergistic;
    if (push) r.near.fallback_source = source.mapped();
    if (push)
        ++core_.counts.pushed;
    else
        copy_shared(r, record, source, bytes);
    return true;
}

void shm_rendezvous::copy_shared(message_operation& r, send_record& record, const peer_buffer& source,
                                 std::uint64_t bytes) noexcept {
    r.near.pieces_done = copy_pieces(record.next, bytes, [&](std::uint64_t start, std::uint64_t n) {
        if (!source.read(r.data + start, start, n)) r.piece_was_refused = true;
    });
}

void shm_rendezvous::advance_receive(message_operation& r) noexcept {
    send_record& record = their_records_[r.record];
    const std::uint64_t bytes = r.info.bytes <= r.bytes ? r.info.bytes : 0; // too long: nothing is copied
    const outcome now =
        r.state == operation_state::staged ? copied_from_staging(r, record, bytes) : copied_by_both(r, record, bytes);
    if (now == outcome::under_way) return;
    receiving_.remove(r);
    record.set(r.near.generation, send_record::received);
    if (now == outcome::withdrawn)
        core_.receive_another(r);
    else
        r.finish();
}

shm_rendezvous::outcome shm_rendezvous::copied_by_both(message_operation& r, send_record& record,
                                                       std::uint64_t bytes) noexcept {
    const std::uint64_t said = record.sender_pieces.load(std::memory_order_acquire);
    const std::uint64_t theirs = said & ~(send_record::withdrawn | send_record::refused);
    if (r.near.pieces_done + theirs >= pieces_of(bytes)) {
        if (!r.piece_was_refused && (said & send_record::refused) == 0) return outcome::complete;
        r.near.fallback_source = nullptr;
        ask_for_staging(r, record); // all of it again
        return outcome::under_way;
    }
    if (r.near.fallback_source != nullptr && is_idle(r, record))
        copy_shared(r, record, {const_cast<std::byte*>(std::exchange(r.near.fallback_source, nullptr)), 0, 0}, bytes);
    return outcome::under_way;
}

bool shm_rendezvous::is_idle(message_operation& r, const send_record& record) const noexcept {
    return ++r.fruitless_polls >= patience && record.next.load(std::memory_order_relaxed) == 0;
}

/// `staged` is the number of pieces placed there so far, `read` the number of those that were read.
shm_rendezvous::outcome shm_rendezvous::copied_from_staging(message_operation& r, send_record& record,
                                                            std::uint64_t bytes) noexcept {
    constexpr std::uint64_t piece = link_layout::staging_bytes;
    // Loaded first: what a withdrawn sender has staged is all that there will be.
    const bool withdrawn = (record.sender_pieces.load(std::memory_order_acquire) & send_record::withdrawn) != 0;
    const std::uint64_t theirs = record.staged.load(std::memory_order_acquire);
    for (; r.near.pieces_done < theirs; ++r.near.pieces_done) {
        const std::uint64_t start = r.near.pieces_done * piece;
        copy_bytes(r.data + start, staged_piece(*their_outbox_, r.near.pieces_done), std::min(piece, bytes - start));
        record.receiver.read.store(r.near.pieces_done + 1, std::memory_order_release);
        core_.moved.note(peer_);
    }
    if (r.near.pieces_done >= pieces_of(bytes, piece)) return outcome::complete;
    if (r.near.fallback_source != nullptr && (withdrawn || is_idle(r, record))) {
        const buffer_place source{reinterpret_cast<std::uint64_t>(std::exchange(r.near.fallback_source, nullptr)), 0};
        if (memory_.at(source).read(r.data, 0, bytes)) {
            --core_.counts.staged;
            ++core_.counts.direct;
            ++core_.counts.read;
            return outcome::complete;
        }
    }
    return withdrawn ? outcome::withdrawn : outcome::under_way;
}

void shm_rendezvous::advance_send(message_operation& s) noexcept {
    if (take_received(s)) return;
    send_record& record = records_[s.record];
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

void shm_rendezvous::help_copy(message_operation& s, send_record& record, bool pushed) noexcept {
    if (record.next.load(std::memory_order_relaxed) >= pieces_of(s.bytes)) return;
    const peer_buffer target = memory_.at(record.receiver.target);
    if (!target.is_reachable()) return; // its receiver copies all
    const std::uint64_t copied = copy_pieces(record.next, s.bytes, [&](std::uint64_t start, std::uint64_t n) {
        if (pushed && streams_.moved)
            copy_bytes(target.mapped() + start, s.data + start, n);
        else if (pushed)
            stream_bytes(target.mapped() + start, s.data + start, n);
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

void shm_rendezvous::stage(message_operation& s, send_record& record) noexcept {
    constexpr std::uint64_t piece = link_layout::staging_bytes, pieces = link_layout::staging_pieces;
    std::uint64_t staged = record.staged.load(std::memory_order_relaxed);
    if (staged == 0) record.next.store(1, std::memory_order_relaxed);
    while (staged < pieces_of(s.bytes, piece) &&
           staged < record.receiver.read.load(std::memory_order_acquire) + pieces) {
        const std::uint64_t start = staged * piece, n = std::min(piece, s.bytes - start);
        std::byte* const place = staged_piece(*outbox_, staged);
        // A line that the receiver has not read would look as if it were near, or time a page fault; one that it read
        // long ago as if it were far, which does no harm where only streaming follows.
        if (!streams_.moved && n == piece && whole_pieces_staged_ == pieces)
            if (const std::uint64_t now = ticks(); streams_.copied.due(now))
                streams_.copied.read(ticks_to_take(place + n / 2), now);
        fill(place, s.data + start, n);
        if (n == piece) whole_pieces_staged_ = std::min(whole_pieces_staged_ + 1, pieces);
        record.staged.store(++staged, std::memory_order_release);
        core_.moved.note(peer_);
    }
}

void shm_rendezvous::withdraw(message_operation& o) noexcept {
    if (o.state == operation_state::announced)
        withdraw_send(o);
    else
        withdraw_receive(o);
}

/// Its record and what it has staged are left to its receiver, which may still read both.
void shm_rendezvous::withdraw_send(message_operation& s) noexcept {
    announced_.remove(s);
    withdrawn_.add(s.record);
    untold_.add(s.record);
    ++core_.owner.under_way;
    withdrawn_generation_[s.record] = s.near.generation;
    mark_withdrawn(s);
}

// A receiver that reads this process's memory continues; one that needs staged copies would wait forever.
void shm_rendezvous::mark_withdrawn(const message_operation& s) noexcept {
    records_[s.record].sender_pieces.fetch_or(send_record::withdrawn, std::memory_order_release);
}

announcement shm_rendezvous::take_untold() noexcept {
    const std::uint32_t record = untold_.take();
    --core_.owner.under_way;
    announcement a;
    a.generation = withdrawn_generation_[record];
    a.record = record;
    return a;
}

void shm_rendezvous::take_back_withdrawn() noexcept {
    withdrawn_.for_each([this](std::uint32_t record) {
        if (records_[record].phase_of(withdrawn_generation_[record]) != send_record::received) return;
        withdrawn_.remove(record);
        if (untold_.has(record)) --core_.owner.under_way;
        untold_.remove(record);
        give_back(record);
    });
}

/// The send ends as if the message had been received.
void shm_rendezvous::withdraw_receive(message_operation& r) noexcept {
    receiving_.remove(r);
    send_record& record = their_records_[r.record];
    if (r.state == operation_state::synergistic) stop_sender(r, record);
    record.set(r.near.generation, send_record::received);
}

void shm_rendezvous::stop_sender(const message_operation& r, send_record& record) noexcept {
    const std::uint64_t pieces = pieces_of(r.info.bytes);
    const std::uint64_t taken = std::min(pieces, record.next.exchange(pieces, std::memory_order_relaxed));
    const auto copied = [&] {
        return record.sender_pieces.load(std::memory_order_acquire) & ~(send_record::withdrawn | send_record::refused);
    };
    const auto writes = [&] { return r.near.pieces_done + copied() < taken; };
    waiter waiting(core_.job);
    while (writes() && waiting.again(peer_) == status::ok) {
    }
    // If the job has failed, the sender may still be writing its last piece, unless it is dead.
    for (const std::uint64_t since = ticks(); writes() && seconds(ticks() - since) < longest_piece;) sched_yield();
}

void shm_rendezvous::abandon() noexcept {
    announced_.for_each([this](const message_operation& s) {
        // Copies stay where they are until the peer has left, too.
        if (std::ranges::none_of(copies_, [&](const message_operation& copy) { return &copy == &s; }))
            mark_withdrawn(s);
    });
    announced_.finish_all();
    while (!receiving_.empty()) { // withdrawing one waits, which may end others
        message_operation& r = *receiving_.first;
        withdraw_receive(r);
        r.finish();
    }
}

std::string shm_rendezvous::describe() const {
    std::string text = memory_.describe();
    const auto add = [&](const streaming_watch& watch, const char* what, std::size_t least) {
        const std::string from = std::string(what) + " from " + std::to_string(least) + " bytes on";
        if (watch.streamed()) text += "; past the sender's cache: " + from;
        if (watch.watches()) text += "; " + from + " are " + watch.describe();
    };
    if (streams_.moved)
        text +=
            "; messages from " + std::to_string(message_streams::least_pushed) + " bytes on are moved by their senders";
    add(streams_.pushed, "messages", message_streams::least_pushed);
    if (!streams_.moved)
        add(streams_.copied, "copies", message_streams::least_copied);
    else if (streams_.copied.watches())
        text += "; copied first up to " + std::to_string(link_layout::copy_bytes) + " bytes " +
                streams_.copied.describe_times() + (streams_.copied.streamed() ? ": now" : "");
    return text;
}

} // namespace halocline::comm
