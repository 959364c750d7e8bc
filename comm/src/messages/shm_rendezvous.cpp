// SPDX-License-Identifier: Apache-2.0
#include "shm_rendezvous.hpp"

#include "node/copy_claimed.hpp"
#include "node/shared_copy.hpp"

#include <halocline/comm/stream_bytes.hpp>
#include <halocline/comm/take_line.hpp>

#include <algorithm>
#include <utility>

namespace halocline::comm {
namespace {

/// Polls for which a receiver waits for its sender to begin: a microsecond.
constexpr std::uint32_t patience = 100;

} // namespace

shm_rendezvous::shm_rendezvous(messenger_core& core, int peer, std::byte* own, std::byte* theirs,
                               const peer_memory& memory, const streaming_watch& pushed)
    : core_(core), peer_(peer), memory_(memory), records_(link_of(own, peer)->record),
      outbox_(outbox_of(own, core.job.ranks, peer)), their_records_(link_of(theirs, core.job.rank)->record),
      their_outbox_(outbox_of(theirs, core.job.ranks, core.job.rank)), pushed_(pushed) {}

announcement shm_rendezvous::announce(message_operation& s) noexcept {
    const node_slab& slab = *core_.job.memory;
    announcement a{.bytes = s.bytes};
    a.record = s.record = free_.take();
    a.generation = s.generation = ++generation_;
    s.pieces_done = 0;
    a.in_slab = slab.contains(s.data);
    a.address = a.in_slab ? static_cast<std::uint64_t>(s.data - slab.base()) : reinterpret_cast<std::uint64_t>(s.data);
    records_[a.record].sender_pieces.store(0, std::memory_order_relaxed);
    s.state = operation_state::announced;
    announced_.push(s);
    return a;
}

message_operation* shm_rendezvous::copy(const message_operation& s) noexcept {
    message_operation& copy = copies_[next_copy_];
    if (!copy.done()) return nullptr;
    copy.data = outbox_->copy[next_copy_];
    copy.bytes = s.bytes;
    copy.peer = peer_;
    next_copy_ = (next_copy_ + 1) % link_layout::copies;
    copy_claimed(copy.data, s.data, s.bytes); // its lines were last with the receiver
    ++core_.counts.copied;
    return &copy;
}

void shm_rendezvous::receive(message_operation& r, std::uint64_t bytes, const announcement& a) noexcept {
    r.peer = peer_;
    r.record = a.record;
    r.generation = a.generation;
    r.pieces_done = 0;
    r.polls = 0;
    send_record& record = their_records_[a.record];
    const std::byte* const source = memory_.mapped(a);
    look_for_sender(record, bytes);
    if (source != nullptr && share_copy(r, record, source, bytes)) {
        ++core_.counts.synergistic;
    } else if (source != nullptr) {
        copy_bytes(r.data, source, bytes);
        ++core_.counts.direct;
    } else if (memory_.read(r.data, a.address, bytes)) {
        ++core_.counts.direct;
        ++core_.counts.read;
    } else {
        record.next.store(0, std::memory_order_relaxed);
        record.set(a.generation, send_record::wants_staging);
        ++core_.counts.staged;
        r.state = operation_state::staged;
    }
    if (r.state == operation_state::synergistic || r.state == operation_state::staged) { // the sender has a part in it
        receiving_.push(r);
        go_on(r);
        return;
    }
    record.set(a.generation, send_record::received);
    r.finish();
}

/// How far away is the sender now? Asked seldom, and only for messages that might be pushed.
void shm_rendezvous::look_for_sender(send_record& record, std::uint64_t bytes) noexcept {
    if (bytes < least_pushed) return;
    if (const std::uint64_t now = ticks(); pushed_.due(now))
        pushed_.read(ticks_to_take(&record.receiver.looked_at), now);
}

bool shm_rendezvous::wants_push(std::uint64_t bytes) const noexcept {
    return (bytes >= least_pushed && pushed_.streamed()) ||
           (bytes >= core_.options.streamed_bytes && !announced_.empty() && core_.job.options.path != path::direct);
}

bool shm_rendezvous::share_copy(message_operation& r, send_record& record, const std::byte* source,
                                std::uint64_t bytes) noexcept {
    const bool push = wants_push(bytes);
    if (!push && bytes < core_.options.synergistic_bytes) return false;
    const node_slab& slab = *core_.job.memory;
    const bool target_in_slab = slab.contains(r.data);
    if (!target_in_slab && !memory_.is_same_process()) return false;
    record.receiver.target =
        target_in_slab ? static_cast<std::uint64_t>(r.data - slab.base()) : reinterpret_cast<std::uint64_t>(r.data);
    record.receiver.target_in_slab = target_in_slab;
    record.next.store(0, std::memory_order_relaxed);
    // Last, with release: a sender that sees the phase sees where the target is, and that no piece is taken.
    record.set(r.generation, push ? send_record::pushed : send_record::shared);
    r.state = operation_state::synergistic;
    r.source = push ? source : nullptr;
    if (push)
        ++core_.counts.pushed;
    else
        r.pieces_done = copy_pieces(record.next, r.data, source, bytes, copy_bytes);
    return true;
}

void shm_rendezvous::go_on(message_operation& r) noexcept {
    send_record& record = their_records_[r.record];
    const std::uint64_t bytes = r.info.bytes <= r.bytes ? r.info.bytes : 0; // too long: nothing is copied
    if (!(r.state == operation_state::staged ? copied_from_staging(r, record, bytes)
                                             : copied_by_both(r, record, bytes)))
        return;
    receiving_.remove(r);
    record.set(r.generation, send_record::received);
    r.finish();
}

bool shm_rendezvous::copied_by_both(message_operation& r, send_record& record, std::uint64_t bytes) noexcept {
    const std::uint64_t theirs = record.sender_pieces.load(std::memory_order_acquire) & ~send_record::withdrawn;
    if (r.pieces_done + theirs >= pieces_of(bytes)) return true;
    // A sender that doesn't begin to push computes, or waits elsewhere: then this end copies.
    if (r.source != nullptr && ++r.polls >= patience && record.next.load(std::memory_order_relaxed) == 0)
        r.pieces_done = copy_pieces(record.next, r.data, std::exchange(r.source, nullptr), bytes, copy_bytes);
    return false;
}

/// `sender_pieces` says how many pieces were ever there, `next` how many of them were read.
bool shm_rendezvous::copied_from_staging(message_operation& r, send_record& record, std::uint64_t bytes) noexcept {
    constexpr std::uint64_t piece = link_layout::staging_bytes;
    const std::uint64_t said = record.sender_pieces.load(std::memory_order_acquire);
    const std::uint64_t theirs = said & ~send_record::withdrawn;
    for (; r.pieces_done < theirs; ++r.pieces_done) {
        const std::uint64_t start = r.pieces_done * piece;
        copy_bytes(r.data + start, staged_piece(*their_outbox_, r.pieces_done), std::min(piece, bytes - start));
        record.next.store(r.pieces_done + 1, std::memory_order_release);
    }
    if (r.pieces_done >= pieces_of(bytes, piece)) return true;
    if (said == theirs) return false;
    core_.fail_withdrawn(r);
    return true;
}

void shm_rendezvous::follow(message_operation& s) noexcept {
    send_record& record = records_[s.record];
    switch (const send_record::phase now = record.phase_of(s.generation)) {
    case send_record::announced: break;
    case send_record::received:
        announced_.remove(s);
        free_.give_back(s.record);
        if (staged_ == &s) staged_ = nullptr;
        s.finish();
        break;
    case send_record::shared:
    case send_record::pushed: help_copy(s, record, now == send_record::pushed); break;
    case send_record::wants_staging:
        if (staged_ == nullptr) staged_ = &s; // there is one staging area for each peer: others wait
        if (staged_ == &s) stage(s, record);
        break;
    }
}

void shm_rendezvous::help_copy(message_operation& s, send_record& record, bool streaming) noexcept {
    if (record.next.load(std::memory_order_relaxed) >= pieces_of(s.bytes)) return;
    std::byte* const target = memory_.target(record.receiver.target, record.receiver.target_in_slab != 0);
    const std::uint64_t copied =
        copy_pieces(record.next, target, s.data, s.bytes, streaming ? stream_bytes : copy_bytes);
    if (copied == 0) return;
    finish_streams();
    s.pieces_done += copied;
    core_.counts.pieces_sent += copied;
    record.sender_pieces.store(s.pieces_done, std::memory_order_release);
}

void shm_rendezvous::stage(message_operation& s, send_record& record) noexcept {
    constexpr std::uint64_t piece = link_layout::staging_bytes;
    while (s.pieces_done < pieces_of(s.bytes, piece) &&
           s.pieces_done < record.next.load(std::memory_order_acquire) + link_layout::staging_pieces) {
        const std::uint64_t start = s.pieces_done * piece;
        copy_bytes(staged_piece(*outbox_, s.pieces_done), s.data + start, std::min(piece, s.bytes - start));
        record.sender_pieces.store(++s.pieces_done, std::memory_order_release);
    }
}

/// The record of a send stays with its receiver.
void shm_rendezvous::withdraw(message_operation& o) noexcept {
    const bool is_send = o.state == operation_state::announced;
    (is_send ? announced_ : receiving_).remove(o);
    if (staged_ == &o) staged_ = nullptr;
    // A receiver that reads this process's memory goes on; one that needs copies of it would wait.
    if (is_send)
        records_[o.record].sender_pieces.store(o.pieces_done | send_record::withdrawn, std::memory_order_release);
}

void shm_rendezvous::abandon() noexcept {
    announced_.finish_all();
    receiving_.finish_all();
}

std::string shm_rendezvous::describe() const {
    std::string text = memory_.describe();
    if (pushed_.streamed()) text += "; past the sender's cache from " + std::to_string(least_pushed) + " bytes";
    if (pushed_.watches()) text += "; messages of " + std::to_string(least_pushed) + " bytes are " + pushed_.describe();
    return text;
}

} // namespace halocline::comm
