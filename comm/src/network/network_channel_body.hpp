// SPDX-License-Identifier: Apache-2.0
// The member functions of network_channel, for explicit instantiation with a network_world and its ends.
#pragma once

#include "network_world.hpp"

#include <halocline/comm/detail/network_channel.hpp>

#include <utility>

namespace halocline::comm {

template <class World, class End>
network_channel<World, End>::network_channel(World& world, std::pmr::memory_resource& memory, std::size_t index,
                                             int peer, std::uint32_t plan_id, std::size_t send_bytes,
                                             std::size_t receive_bytes)
    : end_(&world.open(memory, peer, plan_id, send_bytes, receive_bytes), leave{&world}) {
    static_assert(network_world<World, End>);
    static_cast<message_slots&>(*this) = message_slots(end_->send_slot(), {end_->slot(0), end_->slot(1)}, index, peer,
                                                       plan_id, send_bytes, receive_bytes);
}

template <class World, class End>
std::string network_channel<World, End>::card() const {
    return end_->values.card(world().card(*end_));
}

template <class World, class End>
void network_channel<World, End>::connect(const std::string& peer_card) {
    world().connect(*end_, end_->values.take_card(peer_card));
    end_->joined = true;
}

template <class World, class End>
bool network_channel<World, End>::connected() noexcept {
    if (!end_->greeting_said) {
        end_->greeting_said = true;
        world().greet(*end_);
    }
    world().poll(*end_);
    return end_->error || (end_->greeted && end_->greeting_done());
}

template <class World, class End>
void network_channel<World, End>::send_part(std::uint64_t epoch, std::uint64_t start_stamp, std::size_t bytes,
                                            std::uint32_t field_index) noexcept {
    if (end_->error) return;
    write_label(epoch, start_stamp, bytes, field_index);
    end_->started = epoch;
    world().send(*end_, epoch, message_bytes(bytes));
}

template <class World, class End>
bool network_channel<World, End>::arrived(std::uint64_t epoch) noexcept {
    if (is_here(epoch)) return true;
    world().poll(*end_);
    return is_here(epoch);
}

template <class World, class End>
bool network_channel<World, End>::is_here(std::uint64_t epoch) const noexcept {
    return end_->has(epoch) || end_->over() || end_->error != 0;
}

template <class World, class End>
bool network_channel<World, End>::sent(std::uint64_t epoch) noexcept {
    if (end_->error) return true;
    if (epoch > end_->started) return false;
    if (epoch < end_->started || end_->has_room()) return true;
    world().poll(*end_);
    return end_->has_room() || end_->error != 0;
}

template <class World, class End>
status network_channel<World, End>::check(std::uint64_t epoch) const noexcept {
    const status s = check_part(epoch);
    return s == status::ok && !whole(epoch) ? status::wrong_data : s;
}

template <class World, class End>
status network_channel<World, End>::check_part(std::uint64_t epoch) const noexcept {
    if (!end_->has(epoch)) return end_->error ? end_->lost : status::aborted;
    if (!fits(epoch)) return status::wrong_data;
    return end_->error ? end_->lost : status::ok;
}

template <class World, class End>
std::string network_channel<World, End>::trouble() const {
    return end_->error ? world().describe(*end_) : std::string();
}

template <class World, class End>
std::uint64_t network_channel<World, End>::writes() const noexcept {
    return end_->writes;
}

template <class World, class End>
void network_channel<World, End>::keep(std::shared_ptr<const void> memory) noexcept {
    end_->kept = std::move(memory);
}

template <class World, class End>
void network_channel<World, End>::refuse() noexcept {
    end_->refused = true;
}

template <class World, class End>
void network_channel<World, End>::close() noexcept {
    if (end_) end_.get_deleter().say_farewell(*end_);
}

template <class World, class End>
void network_channel<World, End>::leave::say_farewell(End& end) const noexcept {
    if (!end.joined || end.farewell_said || end.error) return;
    end.farewell_said = true;
    world->say_farewell(end);
}

template <class World, class End>
void network_channel<World, End>::leave::operator()(End* end) const noexcept {
    say_farewell(*end);
    world->release(*end);
}

} // namespace halocline::comm
