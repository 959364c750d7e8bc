// SPDX-License-Identifier: Apache-2.0
// The part of the engine that lets large messages go from memory to memory: the receiver opens its memory and invites the
// sender, which writes.
#include "message_engine.hpp"

#include "job/waiting.hpp"

#include <bit>
#include <cstring>
#include <utility>

namespace halocline::comm {

static_assert(link_layout::records == bulk_link::records); // a send's record is that of its bytes here, too

void message_engine::connect_bulk() {
    std::vector<int> peers;
    std::vector<std::string> cards;
    job_.collectively([&] {
        for (link& l : links_) {
            if (!l.frames) continue;
            auto& bulk = l.frames->bulk = make_bulk_link(core_, l.peer);
            peers.push_back(l.peer);
            cards.push_back(bulk ? bulk->card() : "");
        }
    });
    cards = job_.exchange(peers, cards);
    job_.collectively([&] {
        for (std::size_t i = 0; i < peers.size(); ++i) {
            if (auto& bulk = links_[static_cast<std::size_t>(peers[i])].frames->bulk) bulk->connect(cards[i]);
        }
    });
}

std::string message_engine::way_of_large(const link& l) const {
    if (!l.frames->bulk) return "";
    return "; from " + std::to_string(options_.direct_bytes) +
           " bytes straight into the receiver's memory: " + l.frames->bulk->describe();
}

/// False: later. True: done (state invited), or the memory can't be registered.
bool message_engine::invite(link& from, message_request& r) noexcept {
    frame_link& f = *from.frames;
    bulk_ticket ticket;
    if (f.payload_room() < sizeof ticket) return false; // asked first: once memory is open, the sender must hear of it
    switch (f.bulk->receive(r.record_, {r.data_, r.asked_bytes_}, ticket)) {
    case bulk_link::opening::busy: return false;
    case bulk_link::opening::refused: ++counts_.not_registered; return true;
    case bulk_link::opening::open: break;
    }
    f.append({.kind = frame_item::invite, .record = r.record_, .bytes = r.asked_bytes_},
             reinterpret_cast<const std::byte*>(&ticket), sizeof ticket);
    active_.remove(r);
    r.state_ = request_state::invited;
    f.invited.push(r);
    return true;
}

bool message_engine::invited(link& to, const frame_item& r, const std::byte* payload) noexcept {
    frame_link& f = *to.frames;
    message_request* const send = std::exchange(f.announced[r.record], nullptr);
    if (send == nullptr) { // withdrawn
        f.declines |= std::uint64_t{1} << r.record;
        return true;
    }
    if (r.bytes > send->bytes_) return false;
    std::memcpy(&f.ticket[r.record], payload, sizeof(bulk_ticket));
    to.announced.remove(*send);
    send->asked_bytes_ = r.bytes;
    send->moved_bytes_ = 0;
    send->state_ = request_state::admitted;
    f.writing.push(*send);
    return true;
}

bool message_engine::declined(link& from, std::uint32_t record) noexcept {
    frame_link& f = *from.frames;
    f.invited.for_each([&](message_request& r) {
        if (r.record_ != record) return;
        f.bulk->give_up(record);
        f.invited.remove(r);
        f.receiving[record] = &r; // as if it had called
        r.state_ = request_state::streamed;
    });
    return true;
}

void message_engine::move_bulk(link& l) noexcept {
    frame_link& f = *l.frames;
    // Before the pieces that come instead: stream() waits for it.
    for (; f.declines != 0; f.declines &= f.declines - 1) {
        const auto record = static_cast<std::uint32_t>(std::countr_zero(f.declines));
        if (!f.append({.kind = frame_item::decline, .record = record}, nullptr, 0)) break;
    }
    if (f.invited.first == nullptr && f.writing.first == nullptr) return;
    const std::uint64_t moved = f.bulk->moved(), writes = f.bulk->writes();
    f.bulk->poll();
    f.invited.for_each([&](message_request& r) {
        if (!f.bulk->received(r.record_)) return;
        f.invited.remove(r);
        ++counts_.written;
        finish(r);
    });
    f.writing.for_each([&](message_request& r) {
        if (r.state_ == request_state::admitted) {
            switch (f.bulk->send(r.record_, {r.data_, r.asked_bytes_}, f.ticket[r.record_])) {
            case bulk_link::opening::busy: return;
            case bulk_link::opening::refused:
                ++counts_.not_registered;
                f.writing.remove(r);
                f.declines |= std::uint64_t{1} << r.record_;
                r.state_ = request_state::streaming; // once the decline is said, as if the peer had called
                f.streaming.push(r);
                return;
            case bulk_link::opening::open: break;
            }
            r.state_ = request_state::writing;
        }
        if (!f.bulk->sent(r.record_)) return;
        // The receiver knows by itself when all is there: it is told nothing, and the record may be used again.
        f.writing.remove(r);
        l.free_records[l.free_count++] = r.record_;
        finish(r);
    });
    moved_ += f.bulk->moved() - moved;
    counts_.writes += f.bulk->writes() - writes;
    if (!f.bulk->failed() || f.closed || broken_ != status::ok) return;
    f.closed = true;
    broken_ = core_.lost(l.peer, "can't be reached: " + f.bulk->trouble());
}

/// The request is to be withdrawn: nobody reads or writes its memory when this returns.
void message_engine::leave_bulk(link& l, message_request& r) noexcept {
    frame_link& f = *l.frames;
    if (r.state_ == request_state::admitted) {
        f.writing.remove(r);
        f.declines |= std::uint64_t{1} << r.record_;
        return;
    }
    const auto under_way = [&] { return r.state_ == request_state::invited || r.state_ == request_state::writing; };
    waiter waiting(core_);
    for (bool left = false; under_way(); left = f.closed) {
        progress();
        if (!under_way()) break;
        const bool over = waiting.again(l.peer) != status::ok;
        if (!over && !left) continue;
        // The end of the job, or the peer's: then it has written what it ever will.
        if (over) f.bulk->cut();
        if (r.state_ == request_state::invited) f.bulk->give_up(r.record_);
        (r.state_ == request_state::invited ? f.invited : f.writing).remove(r);
        return;
    }
    if (r.state_ == request_state::streamed) f.receiving[r.record_] = nullptr; // declined meanwhile
}

} // namespace halocline::comm
