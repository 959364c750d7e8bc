// SPDX-License-Identifier: Apache-2.0
// The members of network_window_channel, for the files that instantiate it together with network_channel.
#pragma once

#include "network_channel_body.hpp"
#include "network_window_channel.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

namespace halocline::comm {

template <class World, class End>
network_window_channel<World, End>::network_window_channel(World& world, std::pmr::memory_resource& memory, int peer,
                                                           std::uint32_t id, bool sends, std::size_t bytes,
                                                           std::shared_ptr<const direct_memory> places)
    : base(world, memory, 0, peer, id, sends ? sizeof(note) : 0, sends ? 0 : sizeof(note)), bytes_(bytes) {
    static_assert(direct_network_world<World, End>);
    direct_values& values = this->end_->values;
    values.own = places->fields();
    if (sends) {
        world.open_values(*this->end_, std::array{direct_write{0, 0, 0, bytes}});
        piece_ = values.writes.front().bytes;
        cut_ = bytes;
    }
    this->keep(std::move(places));
}

template <class World, class End>
void network_window_channel<World, End>::send_part(std::uint64_t epoch, std::uint64_t start_stamp,
                                                   std::size_t bytes) noexcept {
    End& end = *this->end_;
    direct_values& values = end.values;
    if (end.error) return;
    last_ = epoch;
    values.is_part = bytes != bytes_;
    const std::size_t writes = (bytes + piece_ - 1) / piece_;
    if (values.is_part) {
        new (base::target(++notes_)) note{epoch, bytes, writes};
        base::send(notes_, start_stamp);
        if (writes == 0 || end.error) return;
    }
    if (cut_ != bytes) { // no allocation: there is room for a whole message
        values.writes.resize(writes);
        for (std::size_t i = 0, at = 0; i < writes; ++i, at += piece_)
            values.writes[i] = {0, at, at, std::min(piece_, bytes - at)};
        cut_ = bytes;
    }
    values.given = epoch;
    values.own_field = 0;
    values.peer_field = has_one_target() ? 0 : static_cast<std::uint32_t>(epoch & 1);
    this->world().send_values(end);
}

template <class World, class End>
bool network_window_channel<World, End>::sent(std::uint64_t epoch) noexcept {
    if (piece_ == 0) return base::sent(epoch); // a token
    End& end = *this->end_;
    const auto done = [&] { return end.error || (end.has_room() && end.values_gone()); };
    if (epoch > last_) return end.error;
    if (epoch < last_ || done()) return true;
    this->world().poll(end);
    return done();
}

template <class World, class End>
typename network_window_channel<World, End>::note network_window_channel<World, End>::next_note() const noexcept {
    note n;
    std::memcpy(&n, base::received(notes_ + 1), sizeof n);
    return n;
}

template <class World, class End>
bool network_window_channel<World, End>::is_next_note_good() const noexcept {
    return base::check(notes_ + 1) == status::ok && next_note().bytes <= bytes_ && next_note().epoch > last_;
}

template <class World, class End>
bool network_window_channel<World, End>::message_arrived(std::uint64_t epoch) noexcept {
    if (is_in_place(epoch)) return true;
    this->world().poll(*this->end_);
    return is_in_place(epoch);
}

template <class World, class End>
bool network_window_channel<World, End>::is_in_place(std::uint64_t epoch) noexcept {
    const End& end = *this->end_;
    if (last_ == epoch || end.error) return true;
    const std::size_t half = epoch & 1;
    if (const std::uint64_t due = whole_[half] + End::counted_values(end.values.writes_in);
        end.values_came[half] >= due) {
        whole_[half] = due;
        last_bytes_ = bytes_;
        last_ = epoch;
    } else if (end.has(notes_ + 1)) {
        if (!is_next_note_good()) return true; // check_message() reports it
        const note n = next_note();            // perhaps of a later epoch
        const std::uint64_t due_parts = parts_[half] + End::counted_values(n.writes);
        if (n.epoch == epoch && end.parts_came[half] >= due_parts) {
            parts_[half] = due_parts;
            last_bytes_ = n.bytes;
            last_ = epoch;
            ++notes_;
        }
    }
    return last_ == epoch || end.over();
}

template <class World, class End>
status network_window_channel<World, End>::check_message(std::uint64_t epoch) const noexcept {
    const End& end = *this->end_;
    if (end.error) return end.lost;
    if (last_ == epoch) return status::ok;
    // The peer has left before this message or in the middle of it.
    return end.has(notes_ + 1) && !is_next_note_good() ? status::wrong_data : status::aborted;
}

} // namespace halocline::comm
