// SPDX-License-Identifier: Apache-2.0
// The member functions of network_direct_channel, for explicit instantiation along with network_channel.
#pragma once

#include "network_channel_body.hpp"

#include <halocline/comm/detail/network_direct_channel.hpp>

namespace halocline::comm {

template <class World, class End>
network_direct_channel<World, End>::network_direct_channel(World& world, std::pmr::memory_resource& memory,
                                                           std::size_t index, int peer, std::uint32_t plan_id,
                                                           std::span<const direct_write> writes,
                                                           std::shared_ptr<const direct_memory> fields)
    : base(world, memory, index, peer, plan_id, 0, 0) {
    static_assert(direct_network_world<World, End>);
    this->end_->values.own = fields->fields();
    world.open_values(*this->end_, writes);
    this->keep(std::move(fields));
}

template <class World, class End>
bool network_direct_channel<World, End>::freed(std::uint64_t epoch) noexcept {
    End& end = *this->end_;
    if (!end.has(epoch) && !end.error) this->world().poll(end);
    return end.has(epoch) && !end.over() && !end.error && base::check(epoch) == status::ok;
}

template <class World, class End>
void network_direct_channel<World, End>::send(std::uint64_t epoch, std::uint32_t own_field,
                                              std::uint32_t peer_field) noexcept {
    direct_values& values = this->end_->values;
    values.given = epoch;
    values.own_field = own_field;
    values.peer_field = peer_field;
    if (!values.writes.empty() && !this->end_->error) this->world().send_values(*this->end_);
}

template <class World, class End>
bool network_direct_channel<World, End>::given(std::uint64_t epoch) const noexcept {
    return this->end_->values.given >= epoch;
}

template <class World, class End>
bool network_direct_channel<World, End>::sent(std::uint64_t epoch) noexcept {
    End& end = *this->end_;
    const auto done = [&] {
        if (end.error) return true;
        if (end.values.given < epoch) return end.over(); // if so, nobody will free the fields any more
        return end.has_room() && end.values_gone();
    };
    if (done()) return true;
    this->world().poll(end);
    return done();
}

template <class World, class End>
bool network_direct_channel<World, End>::arrived(std::uint64_t epoch) noexcept {
    if (is_here(epoch)) return true;
    this->world().poll(*this->end_);
    return is_here(epoch);
}

template <class World, class End>
bool network_direct_channel<World, End>::is_here(std::uint64_t epoch) const noexcept {
    const End& end = *this->end_;
    if (end.over() || end.error != 0) return true;
    return end.has(epoch) && (end.has_values(epoch) || base::check(epoch) != status::ok);
}

template <class World, class End>
status network_direct_channel<World, End>::check(std::uint64_t epoch) const noexcept {
    const End& end = *this->end_;
    const status s = base::check(epoch);
    if (s != status::ok) return s;
    // The peer has left: before its values arrived, or before it could receive these, if there are any.
    const bool unsent = !end.values.writes.empty() && end.values.given < epoch;
    return !end.has_values(epoch) || (end.over() && unsent) ? status::aborted : s;
}

} // namespace halocline::comm
