// SPDX-License-Identifier: Apache-2.0
#include "frame_rendezvous.hpp"

#include <halocline/comm/detail/copy_bytes.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace halocline::comm {

void frame_rendezvous::announced(message_operation& s, std::uint32_t record) noexcept {
    s.record = record;
    s.state = operation_state::announced;
    announced_[record] = &s;
}

void frame_rendezvous::receive(message_operation& r, std::uint32_t record, std::uint64_t bytes) noexcept {
    r.peer = frames_.peer();
    r.record = record;
    r.far.asked_bytes = bytes;
    r.far.moved_bytes = 0;
    r.state = operation_state::calling;
    calling_.push(r);
    ++core_.counts.called;
    call(r);
}

// Pieces fill every frame that may be sent, so the last one of the step before goes first, and then what is short:
// behind a stream of pieces the peer's own messages, which wait for a call, would never be called for.
void frame_rendezvous::progress() noexcept {
    frames_.flush();
    tell_refused();
    recall_withdrawn();
    call_for_not_wanted();
    calling_.for_each([this](message_operation& r) { call(r); });
    if (rdma_) rdma_->progress(called_for_);
    called_for_.for_each([this](message_operation& s) { send_pieces(s); });
}

void frame_rendezvous::peer_left() noexcept {
    called_for_.finish_all();
    calling_.for_each([this](message_operation& r) {
        calling_.remove(r);
        core_.receive_another(r);
    });
    for (message_operation*& o : receiving_)
        if (o != nullptr) core_.receive_another(*std::exchange(o, nullptr));
}

/// Asks the sender of a large message for its bytes: invites it to write them, or calls for them in pieces. A receive
/// that wants none (the message is longer than its room) calls, too, so that the sender gets its record back.
/// progress() retries what can't be sent now.
void frame_rendezvous::call(message_operation& r) noexcept {
    if (rdma_ && r.far.asked_bytes >= core_.options.direct_bytes) {
        switch (rdma_->invite(r, calling_)) {
        case rdma_rendezvous::invitation::later: return;
        case rdma_rendezvous::invitation::told: frames_.flush(); return;
        case rdma_rendezvous::invitation::refused: break;
        }
    }
    if (!frames_.append({.kind = frame_item::call, .record = r.record, .bytes = r.far.asked_bytes})) return;
    calling_.remove(r);
    if (r.far.asked_bytes == 0)
        r.finish();
    else
        expect_pieces(r);
    frames_.flush();
}

void frame_rendezvous::expect_pieces(message_operation& r) noexcept {
    r.state = operation_state::in_pieces;
    receiving_[r.record] = &r;
}

/// Sends pieces of a message that its receiver has called for, as far as frames may be sent. A piece ends with the
/// message or fills the rest of a frame; if less than `smallest_piece` is left, the rest stays unused.
void frame_rendezvous::send_pieces(message_operation& s) noexcept {
    constexpr std::uint64_t smallest_piece = 512;
    if (rdma_ && rdma_->owes_decline(s.record)) return; // the receiver must first learn that pieces are coming
    while (s.far.moved_bytes < s.far.asked_bytes) {
        const std::uint64_t left = s.far.asked_bytes - s.far.moved_bytes;
        std::uint64_t n = std::min<std::uint64_t>(left, frames_.payload_room());
        if (n < std::min<std::uint64_t>(left, smallest_piece)) n = 0;
        if (n > 0) {
            frames_.append({.kind = frame_item::piece, .record = s.record, .bytes = n}, s.data + s.far.moved_bytes, n);
            s.far.moved_bytes += n;
        }
        if (n < left && !frames_.flush()) return;
    }
    // The receiver counts bytes by record: the record may be reused as soon as the last piece is in a frame.
    called_for_.remove(s);
    records_.give_back(s.record);
    if (s.far.asked_bytes == 0)
        s.finish();
    else
        frames_.finish_with_frame(s);
}

template <class Work>
bool frame_rendezvous::with_announced(std::uint32_t record, std::uint64_t bytes, Work&& work) noexcept {
    message_operation* const s = announced_[record];
    if (s == nullptr) {
        if (!withdrawn_.has(record)) return false;
        withdrawn_.remove(record);
        untold_.remove(record);
        refuse(record);
        return true;
    }
    if (bytes > s->bytes) return false;
    announced_[record] = nullptr;
    work(*s);
    return true;
}

bool frame_rendezvous::take_call(std::uint32_t record, std::uint64_t bytes) noexcept {
    return with_announced(record, bytes, [&](message_operation& s) {
        s.far.asked_bytes = bytes;
        s.far.moved_bytes = 0;
        s.state = operation_state::called_for;
        called_for_.push(s);
    });
}

bool frame_rendezvous::take_piece(std::uint32_t record, const std::byte* payload, std::uint64_t bytes) noexcept {
    message_operation* const r = receiving_[record];
    if (r == nullptr) return true; // the receive was withdrawn; its sender sends all pieces regardless
    if (bytes > r->far.asked_bytes - r->far.moved_bytes) return false;
    copy_bytes(r->data + r->far.moved_bytes, payload, bytes);
    ++core_.counts.frame_pieces;
    r->far.moved_bytes += bytes;
    if (r->far.moved_bytes == r->far.asked_bytes) {
        receiving_[record] = nullptr;
        r->finish();
    }
    return true;
}

bool frame_rendezvous::take_invitation(std::uint32_t record, std::uint64_t bytes, const std::byte* ticket) noexcept {
    if (!rdma_) return false;
    bulk_ticket where;
    std::memcpy(&where, ticket, sizeof where);
    return with_announced(record, bytes, [&](message_operation& s) { rdma_->admit(s, bytes, where); });
}

bool frame_rendezvous::take_decline(std::uint32_t record) noexcept {
    if (!rdma_) return false;
    if (message_operation* const r = rdma_->declined(record)) expect_pieces(*r); // as if it had called
    return true;
}

void frame_rendezvous::take_withdrawn(std::uint32_t record) noexcept {
    message_operation* r = std::exchange(receiving_[record], nullptr);
    if (r == nullptr && rdma_) r = rdma_->declined(record);
    if (r != nullptr) core_.receive_another(*r); // otherwise it was withdrawn, too, or wanted no bytes
}

/// No other message has that record before its sender has got a call, too.
void frame_rendezvous::take_recall(std::uint32_t record) noexcept {
    message_operation* to_call = nullptr;
    calling_.for_each([&](message_operation& r) {
        if (r.record == record) to_call = &r;
    });
    if (to_call == nullptr) return take_withdrawn(record);
    calling_.remove(*to_call);
    call_in_vain(record);
    core_.receive_another(*to_call);
}

void frame_rendezvous::tell_refused() noexcept {
    refused_.take_while([this](std::uint32_t record) {
        if (!frames_.append({.kind = frame_item::withdrawn, .record = record})) return false;
        records_.give_back(record);
        return true;
    });
}

void frame_rendezvous::recall_withdrawn() noexcept {
    untold_.take_while(
        [this](std::uint32_t record) { return frames_.append({.kind = frame_item::recalled, .record = record}); });
}

void frame_rendezvous::call_for_not_wanted() noexcept {
    not_wanted_.take_while(
        [this](std::uint32_t record) { return frames_.append({.kind = frame_item::call, .record = record}); });
}

void frame_rendezvous::withdraw(message_operation& o) noexcept {
    switch (o.state) {
    case operation_state::announced:
        announced_[o.record] = nullptr;
        withdrawn_.add(o.record);
        untold_.add(o.record);
        recall_withdrawn(); // now, if that is possible: this may be the rank's last call for a while
        frames_.flush();
        return;
    case operation_state::called_for:
        called_for_.remove(o);
        if (rdma_) rdma_->decline_no_more(o.record);
        refuse(o.record);
        tell_refused(); // now, as above
        frames_.flush();
        return;
    case operation_state::calling:
        calling_.remove(o);
        not_wanted_.add(o.record);
        return;
    case operation_state::admitted:
        rdma_->withdraw(o);
        refuse(o.record);
        tell_refused();
        frames_.flush();
        return;
    case operation_state::invited:
    case operation_state::writing: rdma_->withdraw(o); break;
    default: break;
    }
    if (o.state == operation_state::in_pieces) receiving_[o.record] = nullptr;
}

void frame_rendezvous::abandon() noexcept {
    calling_.finish_all(); // first, because the following waits call for what is in there
    if (rdma_) rdma_->abandon();
    called_for_.finish_all(); // the waits may have added some
    for (message_operation* o : announced_) {
        if (o == nullptr) continue;
        withdraw(*o); // another link may wait now, and this one take a call
        o->finish();
    }
    for (message_operation*& o : receiving_)
        if (o != nullptr) std::exchange(o, nullptr)->finish();
}

} // namespace halocline::comm
