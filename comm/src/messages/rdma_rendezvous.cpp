// SPDX-License-Identifier: Apache-2.0
#include "rdma_rendezvous.hpp"

#include "job/waiting.hpp"

#include <utility>

namespace halocline::comm {

namespace {

/// May the network read or write its memory?
bool is_under_way(const message_operation& o) noexcept {
    return o.state == operation_state::invited || o.state == operation_state::writing;
}

} // namespace

rdma_rendezvous::invitation rdma_rendezvous::invite(message_operation& r, operation_list& calling) noexcept {
    bulk_ticket ticket;
    // Checked first, because once memory is open the sender must be informed.
    if (frames_.payload_room() < sizeof ticket) return invitation::later;
    switch (bulk_->receive(number_of(r.record), {r.data, r.far.asked_bytes}, ticket)) {
    case bulk_link::opening::busy: return invitation::later;
    case bulk_link::opening::refused: ++core_.counts.not_registered; return invitation::refused;
    case bulk_link::opening::open: break;
    }
    frames_.append({.kind = frame_item::invite, .record = r.record, .bytes = r.far.asked_bytes},
                   reinterpret_cast<const std::byte*>(&ticket), sizeof ticket);
    calling.remove(r);
    r.state = operation_state::invited;
    invited_.push(r);
    return invitation::told;
}

message_operation* rdma_rendezvous::declined(std::uint32_t record) noexcept {
    message_operation* declined = nullptr;
    invited_.for_each([&](message_operation& r) {
        if (r.record != record) return;
        bulk_->give_up(number_of(record));
        invited_.remove(r);
        declined = &r;
    });
    return declined;
}

void rdma_rendezvous::admit(message_operation& s, std::uint64_t bytes, const bulk_ticket& ticket) noexcept {
    ticket_[number_of(s.record)] = ticket;
    s.far.asked_bytes = bytes;
    s.far.moved_bytes = 0;
    s.state = operation_state::admitted;
    writing_.push(s);
}

void rdma_rendezvous::progress(operation_list& called_for) noexcept {
    tell_declines();
    if (invited_.empty() && writing_.empty()) return;
    const std::uint64_t writes = bulk_->writes();
    bulk_->poll();
    look_for_received();
    writing_.for_each([&](message_operation& s) { write(s, called_for); });
    // All since the last time: polls for other peers may have counted some.
    if (const std::uint64_t more = bulk_->moved() - std::exchange(moved_, bulk_->moved()); more > 0)
        core_.moved.note(frames_.peer(), more);
    core_.counts.writes += bulk_->writes() - writes;
    if (bulk_->failed() && !frames_.is_closed() && core_.broken == status::ok) frames_.lose(bulk_->trouble());
}

/// Goes before the pieces that replace the writes; they wait for it.
void rdma_rendezvous::tell_declines() noexcept {
    declines_.take_while(
        [this](std::uint32_t record) { return frames_.append({.kind = frame_item::decline, .record = record}); });
}

void rdma_rendezvous::look_for_received() noexcept {
    invited_.for_each([&](message_operation& r) {
        if (!bulk_->received(number_of(r.record))) return;
        invited_.remove(r);
        ++core_.counts.written;
        r.finish();
    });
}

void rdma_rendezvous::write(message_operation& s, operation_list& called_for) noexcept {
    if (s.state == operation_state::admitted) {
        switch (bulk_->send(number_of(s.record), {s.data, s.far.asked_bytes}, ticket_[number_of(s.record)])) {
        case bulk_link::opening::busy: return;
        case bulk_link::opening::refused:
            ++core_.counts.not_registered;
            writing_.remove(s);
            decline(s.record);
            s.state = operation_state::called_for; // by the decline, once that is sent
            called_for.push(s);
            return;
        case bulk_link::opening::open: break;
        }
        s.state = operation_state::writing;
    }
    if (!bulk_->sent(number_of(s.record))) return;
    // The receiver sees by itself when everything has arrived: no notice is needed, and the record may be reused.
    writing_.remove(s);
    records_.give_back(s.record);
    s.finish();
}

void rdma_rendezvous::withdraw(message_operation& o) noexcept {
    if (o.state == operation_state::admitted) {
        writing_.remove(o);
        return;
    }
    waiter waiting(core_.job);
    bool over = false, left = false;
    std::uint64_t moved = core_.moved.count();
    while (is_under_way(o) && !over && !left) {
        left = frames_.is_closed() && !still_settles(o);
        over = waiting.again(frames_.peer()) != status::ok; // every wait of the rank advances its messages
        const std::uint64_t before = std::exchange(moved, core_.moved.count());
        if (core_.moved.since(before, frames_.peer())) waiting.restart_deadline(); // as in the engine's waits
    }
    if (!is_under_way(o)) return;
    // The job has ended, or the peer's part in it; the peer won't write any more.
    if (over || core_.broken != status::ok) bulk_->cut();
    if (o.state == operation_state::invited) bulk_->give_up(number_of(o.record));
    (o.state == operation_state::invited ? invited_ : writing_).remove(o);
}

void rdma_rendezvous::abandon() noexcept {
    for (operation_list* all : {&invited_, &writing_}) {
        while (!all->empty()) { // withdrawing waits, which may end others or move them to other lists
            message_operation& o = *all->first;
            const bool is_admitted = o.state == operation_state::admitted;
            withdraw(o);
            if (is_admitted || is_under_way(o)) o.finish();
        }
    }
}

std::string rdma_rendezvous::describe() const {
    return "; from " + std::to_string(core_.options.direct_bytes) +
           " bytes straight into the receiver's memory: " + bulk_->describe();
}

} // namespace halocline::comm
