// SPDX-License-Identifier: Apache-2.0
// What every message goes through, whatever its size and way: begin of a send, delivery, progress, waits.
#include "message_engine.hpp"

#include "job/waiting.hpp"

#include <cstring>
#include <utility>

namespace halocline::comm {

void message_engine::begin(message_request& r, std::byte* data, std::size_t bytes, int peer, int tag,
                           std::uint32_t context) noexcept {
    r.data_ = data;
    r.bytes_ = bytes;
    r.peer_ = peer;
    r.tag_ = tag;
    r.context_ = context;
    r.engine_ = this;
}

void message_engine::isend(message_request& r, std::span<const std::byte> data, int to, int tag,
                           std::uint32_t context) noexcept {
    if (!is_rank(to) || tag < 0) return misuse(true, to, tag);
    begin(r, const_cast<std::byte*>(data.data()), data.size(), to, tag, context);
    link& l = links_[static_cast<std::size_t>(to)];
    if (l.queued.first != nullptr || !announce(l, r)) {
        r.state_ = request_state::queued;
        l.queued.push(r);
    }
    if (!l.frames) return;
    if (options_.test_on_init) move_frames(l);
    if (options_.wait_on_send.count() > 0) (void)start_all({&r, 1}, options_.wait_on_send);
}

bool message_engine::send_now(std::span<const std::byte> data, int to, int tag, std::uint32_t context) noexcept {
    if (!is_rank(to) || tag < 0) return false; // isend() tells
    link& l = links_[static_cast<std::size_t>(to)];
    if (data.size() > options_.immediate_bytes || l.queued.first != nullptr || !l.out.is_open()) return false;
    return l.out.send(data, label_for(l, tag, context));
}

bool message_engine::announce(link& to, message_request& r) noexcept {
    if (to.peer == core_.rank) return to_self(to, r);
    if (to.frames) return frame_message(to, r);
    if (r.bytes_ > options_.immediate_bytes) return announce_large(to, r);
    if (!to.out.send({r.data_, r.bytes_}, label_for(to, r.tag_, r.context_))) return false;
    finish(r);
    return true;
}

bool message_engine::to_self(link& self, message_request& r) noexcept {
    const bool immediate = r.bytes_ <= options_.immediate_bytes;
    r.state_ = request_state::announced; // until it is received, if it is large: its buffer is read then
    self.announced.push(r);
    const incoming m{core_.rank, r.tag_, r.context_, r.bytes_, immediate ? r.data_ : nullptr, immediate ? nullptr : &r};
    const bool room = arrive(self, m);
    if (r.done()) return true;
    if (room && !immediate) return true;
    self.announced.remove(r);
    if (room) finish(r);
    return room;
}

void message_engine::deliver(link& from, message_request& r, const incoming& m) noexcept {
    r.info_ = {m.source, m.tag, m.bytes};
    const bool fits = m.bytes <= r.bytes_;
    if (!fits && status_ == status::ok) fail(status::wrong_data, r, 0, m.bytes);
    if (m.own != nullptr) {
        if (fits) copy_bytes(r.data_, m.own->data_, m.bytes);
        ++counts_.direct;
        from.announced.remove(*m.own);
        finish(*m.own);
        finish(r);
    } else if (m.bytes <= options_.immediate_bytes) {
        if (fits && m.slot != nullptr)
            copy_from_slot(r.data_, *m.slot, m.bytes);
        else if (fits)
            copy_bytes(r.data_, m.payload, m.bytes);
        ++counts_.immediate;
        finish(r);
    } else {
        announcement a;
        std::memcpy(&a, m.payload, sizeof a);
        const std::uint64_t wanted = fits ? m.bytes : 0; // asked for all the same, so that its send ends
        if (from.frames && a.address != 0)
            take_whole(from, r, wanted, a);
        else if (from.frames)
            enlist_call(from, r, a.record, wanted);
        else
            fetch(from, r, wanted, a);
    }
}

void message_engine::enlist_call(link& from, message_request& r, std::uint32_t record, std::uint64_t bytes) noexcept {
    r.peer_ = from.peer;
    r.record_ = record;
    r.asked_bytes_ = bytes;
    r.moved_bytes_ = 0;
    r.state_ = request_state::calling;
    active_.push(r);
    ++counts_.called;
    call_for(from, r);
}

void message_engine::progress() noexcept {
    unattended_ = 0;
    for (link& l : links_) {
        if (l.in.is_open()) drain(l);
        if (l.frames) move_frames(l);
        if (l.announced.first != nullptr) l.announced.for_each([&](message_request& r) { follow(l, r); });
        while (l.queued.first != nullptr) {
            message_request& r = *l.queued.first;
            l.queued.remove(r);
            if (announce(l, r)) continue;
            r.state_ = request_state::queued;
            l.queued.push_front(r); // no room: it stays the first
            break;
        }
    }
    if (active_.first != nullptr) active_.for_each([&](message_request& r) { go_on(r); });
}

bool message_engine::gone(int peer) const noexcept {
    if (peer < 0 || peer == core_.rank) return false;
    const link& l = links_[static_cast<std::size_t>(peer)];
    return l.frames ? l.frames->closed : shm_channel::closed(*l.farewell->line());
}

template <class Who, class Fine>
status message_engine::wait(std::size_t count, Who&& who, Fine&& fine,
                            std::optional<std::chrono::nanoseconds> longest) noexcept {
    if (status_ != status::ok) return status_;
    std::size_t i = 0;
    const auto done = [&] {
        while (i < count && fine(who(i))) ++i;
        return i == count;
    };
    const std::uint64_t begin = longest ? ticks() : 0;
    std::uint64_t moved = moved_;
    std::optional<waiter> waiting(core_);
    for (std::uint64_t polls = 0; !done(); ++polls) {
        progress();
        if (status_ != status::ok || done()) break;
        if (polls % polls_per_pause_ != 0) continue;
        const int peer = who(i).peer_;
        // As long as something comes or goes, a large message may take longer than the deadline.
        if (std::exchange(moved, moved_) != moved_) waiting.emplace(core_);
        status bad = broken_ != status::ok ? broken_ : waiting->again(peer);
        if (bad == status::ok && polls % 4096 == 0 && gone(peer)) {
            progress(); // what it did before it left
            bad = status::aborted;
        }
        if (status_ != status::ok || done()) break; // again() makes progress, too
        if (bad != status::ok) {
            std::size_t more = 0;
            for (std::size_t k = i + 1; k < count; ++k) more += !fine(who(k));
            fail(bad, who(i), more);
        } else if (longest && seconds(ticks() - begin) > std::chrono::duration<double>(*longest).count()) {
            return status::timed_out;
        }
    }
    return status_;
}

namespace {

constexpr auto is_done = [](const message_request& r) { return r.done(); };

} // namespace

status message_engine::wait_one(message_request& r) noexcept {
    return wait(
        1, [&](std::size_t) -> message_request& { return r; }, is_done);
}

status message_engine::send(std::span<const std::byte> data, int to, int tag, std::uint32_t context) noexcept {
    message_request r;
    isend(r, data, to, tag, context);
    return wait_one(r);
}

status message_engine::recv(std::span<std::byte> into, int from, int tag, std::uint32_t context,
                            message_info& info) noexcept {
    message_request r;
    irecv(r, into, from, tag, context);
    const status s = wait_one(r);
    info = r.info();
    return s;
}

status message_engine::wait_all(std::span<message_request> all,
                                std::optional<std::chrono::nanoseconds> longest) noexcept {
    return wait(
        all.size(), [&](std::size_t i) -> message_request& { return all[i]; }, is_done, longest);
}

status message_engine::wait_all(std::span<message_request* const> all) noexcept {
    return wait(
        all.size(), [&](std::size_t i) -> message_request& { return *all[i]; }, is_done);
}

/// Will it end without this rank?
bool message_engine::has_started(const message_request& r) const noexcept {
    switch (r.state_) {
    case request_state::queued:
    case request_state::framed:
    case request_state::streaming:
    case request_state::admitted:
    case request_state::writing: return false;
    case request_state::announced: return !links_[static_cast<std::size_t>(r.peer_)].frames;
    default: return true;
    }
}

status message_engine::start_all(std::span<message_request> all, std::chrono::nanoseconds longest) noexcept {
    return wait(
        all.size(), [&](std::size_t i) -> message_request& { return all[i]; },
        [this](const message_request& r) { return has_started(r); }, longest);
}

void message_engine::fail(status why, const message_request& r, std::size_t more,
                          std::uint64_t message_bytes) noexcept {
    status_ = why;
    const bool is_send = r.state_ == request_state::announced || !has_started(r);
    failed_ = {is_send, r.peer_, r.tag_, r.bytes_, message_bytes, more};
}

void message_engine::misuse(bool is_send, int peer, int tag) noexcept {
    if (status_ != status::ok) return;
    status_ = status::misused;
    failed_ = {is_send, peer, tag, 0, 0, 0};
}

bool message_engine::test(message_request& r) noexcept {
    if (r.done()) return true;
    progress();
    if (r.done() || status_ != status::ok) return true;
    status s = broken_;
    if (s == status::ok) s = found_nothing(core_, calls_for_nothing_, r.peer_);
    if (s != status::ok) fail(s, r, 0);
    return status_ != status::ok;
}

} // namespace halocline::comm
