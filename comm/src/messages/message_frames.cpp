// SPDX-License-Identifier: Apache-2.0
// The part of the engine that moves messages over a network.
#include "message_engine.hpp"

#include "job/job_core.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace halocline::comm {
namespace {

constexpr std::uint64_t smallest_piece = 512; // of a message that does not end there
constexpr int most_untold = 8;                // records to give back, for which alone a frame goes

} // namespace

bool message_engine::frame_message(link& to, message_request& r) noexcept {
    frame_link& f = *to.frames;
    const bool immediate = r.bytes_ <= options_.immediate_bytes;
    if (f.messages_sent == f.may_send || (!immediate && to.free_count == 0)) return false;
    const std::uint32_t record = immediate ? 0 : to.free_records[to.free_count - 1];
    const bool whole = !immediate && r.bytes_ <= f.most_whole();
    if (!f.append({whole ? frame_item::whole : frame_item::message, record, r.tag_, r.context_, r.bytes_}, r.data_,
                  immediate || whole ? r.bytes_ : 0))
        return false;
    ++f.messages_sent;
    if (!immediate) --to.free_count;
    if (immediate || whole) {
        if (whole) f.sent_whole |= std::uint64_t{1} << record;
        r.state_ = request_state::framed;
        f.framed.push(r);
    } else {
        r.record_ = record;
        r.state_ = request_state::announced;
        f.announced[record] = &r;
        to.announced.push(r);
    }
    send_frame(to, false);
    return true;
}

void message_engine::send_frame(link& to, bool also_empty) noexcept {
    frame_link& f = *to.frames;
    // What came and was received, and as much more as there is room for among the unexpected ones.
    const std::uint64_t credit = options_.unexpected + f.messages_came - to.early.size();
    const bool tell = credit - f.credit_told >= std::max<std::uint64_t>(1, options_.unexpected / 4) ||
                      std::popcount(f.give_back) >= most_untold;
    if (f.is_empty() && !also_empty && !tell) return; // credit goes with other items if it can
    if (!f.can_send()) return;
    const frame_head head{f.credit_told = credit, std::exchange(f.give_back, 0)};
    std::memcpy(f.frame, &head, sizeof head);
    f.send();
    f.framed.for_each([this](message_request& r) { finish(r); });
    f.framed = {};
}

void message_engine::take_frames(link& from) noexcept {
    frame_link& f = *from.frames;
    for (bool ask = true; !f.closed; ask = false) { // the network once: what came with a frame is known by then
        if (!f.arrived(ask)) return;
        status s = f.check();
        if (s == status::ok) s = read_frame(from, f.received());
        if (s == status::peer_died) s = core_.lost(from.peer, "can't be reached: " + f.trouble());
        f.closed = s != status::ok; // status::aborted: the peer's farewell
        if (s == status::ok) {
            ++f.taken;
            ++moved_;
        } else if (s != status::aborted) {
            broken_ = s;
        }
    }
}

/// What came over the wire is checked before it is believed: a wrong frame ends the job, not this process.
status message_engine::read_frame(link& from, std::span<const std::byte> bytes) noexcept {
    frame_link& f = *from.frames;
    if (bytes.size() < sizeof(frame_head)) return status::wrong_data;
    frame_head head;
    std::memcpy(&head, bytes.data(), sizeof head);
    f.may_send = head.credit;
    if ((head.given_back & ~f.sent_whole) != 0) return status::wrong_data;
    f.sent_whole &= ~head.given_back;
    for (std::uint64_t records = head.given_back; records != 0; records &= records - 1)
        from.free_records[from.free_count++] = static_cast<std::uint32_t>(std::countr_zero(records));
    for (bytes = bytes.subspan(sizeof head); bytes.size() >= sizeof(frame_item);) {
        frame_item r;
        std::memcpy(&r, bytes.data(), sizeof r);
        bytes = bytes.subspan(sizeof r);
        const bool carries = r.kind == frame_item::piece || r.kind == frame_item::whole ||
                             (r.kind == frame_item::message && r.bytes <= options_.immediate_bytes);
        const std::size_t payload = r.kind == frame_item::invite ? sizeof(bulk_ticket) : carries ? r.bytes : 0;
        if (r.record >= link_layout::records || !frame_link::holds(bytes.size(), payload)) return status::wrong_data;
        if (!read_item(from, r, bytes.data())) return status::wrong_data;
        bytes = bytes.subspan(frame_link::padded(payload));
    }
    return status::ok;
}

bool message_engine::read_item(link& from, const frame_item& r, const std::byte* payload) noexcept {
    frame_link& f = *from.frames;
    switch (r.kind) {
    case frame_item::whole:
    case frame_item::message: {
        ++f.messages_came;
        const bool whole = r.kind == frame_item::whole;
        const announcement a{
            .bytes = r.bytes, .address = whole ? reinterpret_cast<std::uint64_t>(payload) : 0, .record = r.record};
        const bool immediate = r.bytes <= options_.immediate_bytes;
        return arrive(from, {from.peer, r.tag, r.context, r.bytes,
                             immediate ? payload : reinterpret_cast<const std::byte*>(&a), nullptr});
    }
    case frame_item::call:
        if (message_request* const send = std::exchange(f.announced[r.record], nullptr)) {
            from.announced.remove(*send);
            send->asked_bytes_ = r.bytes;
            send->moved_bytes_ = 0;
            send->state_ = request_state::streaming;
            f.streaming.push(*send);
        } // else the send was withdrawn: its receive waits for ever, as decision 0025 says
        return true;
    case frame_item::piece:
        if (message_request* const receive = f.receiving[r.record]) {
            if (r.bytes > receive->asked_bytes_ - receive->moved_bytes_) return false;
            std::memcpy(receive->data_ + receive->moved_bytes_, payload, r.bytes);
            ++counts_.frame_pieces;
            receive->moved_bytes_ += r.bytes;
            if (receive->moved_bytes_ == receive->asked_bytes_) {
                f.receiving[r.record] = nullptr;
                finish(*receive);
            }
        } // else the receive was withdrawn: its sender streams to the end, for nobody
        return true;
    case frame_item::invite: return f.bulk != nullptr && invited(from, r, payload);
    case frame_item::decline: return f.bulk != nullptr && declined(from, r.record);
    default: return false;
    }
}

/// A message that came with its bytes.
void message_engine::take_whole(link& from, message_request& r, std::uint64_t bytes, const announcement& a) noexcept {
    copy_bytes(r.data_, reinterpret_cast<const std::byte*>(a.address), bytes);
    from.frames->give_back |= std::uint64_t{1} << a.record;
    ++counts_.whole;
    finish(r);
}

/// Asks the sender of a large message for its bytes: invites it to write them, or calls for them in pieces. A receive
/// that wants none (the message is longer than its room) calls, too, so that the sender gets its record back. What can't
/// be said now is tried again by go_on().
void message_engine::call_for(link& from, message_request& r) noexcept {
    frame_link& f = *from.frames;
    if (f.bulk && r.asked_bytes_ >= options_.direct_bytes) {
        if (!invite(from, r)) return;
        if (r.state_ == request_state::invited) return send_frame(from, false);
    }
    if (!f.append({.kind = frame_item::call, .record = r.record_, .bytes = r.asked_bytes_}, nullptr, 0)) return;
    active_.remove(r);
    if (r.asked_bytes_ == 0) {
        finish(r);
    } else {
        r.state_ = request_state::streamed;
        f.receiving[r.record_] = &r;
    }
    send_frame(from, false);
}

/// Sends pieces of a message for which its receiver has called, as far as frames may go. A piece ends with the message, or
/// fills the rest of a frame; less than `smallest_piece` of that is left unused.
void message_engine::stream(link& to, message_request& r) noexcept {
    frame_link& f = *to.frames;
    if (f.declines >> r.record_ & 1) return; // the receiver must know first that pieces come
    while (r.moved_bytes_ < r.asked_bytes_) {
        const std::uint64_t left = r.asked_bytes_ - r.moved_bytes_;
        std::uint64_t n = std::min<std::uint64_t>(left, f.payload_room());
        if (n < std::min<std::uint64_t>(left, smallest_piece)) n = 0;
        if (n > 0) {
            f.append({.kind = frame_item::piece, .record = r.record_, .bytes = n}, r.data_ + r.moved_bytes_, n);
            r.moved_bytes_ += n;
        }
        if (n < left) {
            const std::uint64_t before = f.sent;
            send_frame(to, false);
            if (f.sent == before) return;
        }
    }
    // The receiver counts bytes by record: the record may be used again as soon as the last piece is in a frame.
    f.streaming.remove(r);
    to.free_records[to.free_count++] = r.record_;
    if (r.asked_bytes_ == 0) {
        finish(r);
    } else { // done when that frame goes
        r.state_ = request_state::framed;
        f.framed.push(r);
    }
}

void message_engine::move_frames(link& l) noexcept {
    frame_link& f = *l.frames;
    take_frames(l);
    f.streaming.for_each([&](message_request& r) { stream(l, r); });
    if (f.bulk) move_bulk(l);
    while (f.owes_answer() && f.open()) send_frame(l, true);
    send_frame(l, false);
}

} // namespace halocline::comm
