// SPDX-License-Identifier: Apache-2.0
// The receiving half of a region_plan's exchange.
#include "message_sum.hpp"
#include "region_exchange.hpp"

#include <halocline/comm/clock.hpp>

namespace halocline::halo {

void region_plan::state::help() noexcept {
    const std::vector<field_view>& destination = bindings[bound].destination;
    channels.for_each_direct([&]<class Channel>(Channel& channel) {
        if constexpr (comm::joint_channel<Channel>) {
            const region_message& m = messages[channel.index()];
            channel.help(epoch + 1, m.receive_sites,
                         [&](std::int64_t first, std::int64_t last, const comm::joint_source& source,
                             const std::byte* memory) noexcept {
                             for (std::size_t f = 0; f < destination.size(); ++f)
                                 m.from_peer[f].copy(memory + source.places[f], destination[f].data,
                                                     destination[f].shape, first, last);
                         });
        }
    });
}

bool region_plan::state::is_intact(const region_message& m, const std::byte* message) noexcept {
    if (!seal.seals()) return true;
    const std::vector<field_view>& destination = bindings[bound].destination;
    std::uint64_t sum = 0; // of the fields' parts; what is between them was never written
    for (std::size_t f = 0; f < destination.size(); ++f) {
        const std::size_t bytes = static_cast<std::size_t>(m.receive_sites) * format.bytes(destination[f].shape);
        sum += message_sum(message + m.in_at[f], bytes, m.in_at[f]);
    }
    if (message_seal::is_at(message + m.in_at.back(), sum, epoch + 1)) return true;
    broken_from = m.peer;
    return false;
}

void region_plan::state::unpack(const region_message& m, const std::byte* message) const noexcept {
    const std::vector<field_view>& destination = bindings[bound].destination;
    const auto place_all = [&](std::int64_t first, std::int64_t last) noexcept {
        for (std::size_t f = 0; f < destination.size(); ++f)
            place(message + m.in_at[f], format, m.in[f], m.phased, options.add, destination[f], first, last);
    };
    if (options.add) return place_all(0, m.receive_sites); // a site may occur twice: added by one thread, in order
    by_team(m.receive_sites, place_all);
}

void region_plan::state::multiply(const region_message& m) noexcept {
    if (m.phased.empty()) return;
    const std::uint64_t before = comm::ticks();
    const std::vector<field_view>& destination = bindings[bound].destination;
    by_team(m.receive_sites, [&](std::int64_t first, std::int64_t last) noexcept {
        for (std::size_t f = 0; f < destination.size(); ++f)
            multiply_in_place(m.read_back[f], m.in[f], m.phased, destination[f], first, last);
    });
    times.note_unpacking(comm::ticks() - before);
}

void region_plan::state::advance() noexcept {
    const std::uint64_t k = epoch + 1;
    if (unsent > 0) send_direct();
    if (joint) help();
    const auto take_out = [&](const region_message& m, const std::byte* message) {
        const std::uint64_t before = comm::ticks();
        unpack(m, message);
        times.note_unpacking(comm::ticks() - before);
    };
    const auto note_arrived = [&]<class Channel>(Channel& channel) {
        region_message& m = messages[channel.index()];
        if (m.in_place || !channel.arrived(k) || channel.check(k) != comm::status::ok) return;
        bool by_slot = false;
        if constexpr (comm::slotted_channel<Channel>) by_slot = channel.came_by_slot(k);
        if constexpr (comm::slotted_channel<Channel>)
            if (by_slot) take_out(m, channel.slot_received(k));
        if (!by_slot) multiply(m);
        note(m);
    };
    channels.for_each_direct(note_arrived);
    channels.for_each_rdma(note_arrived);
    channels.for_each([&](auto& channel) {
        region_message& m = messages[channel.index()];
        if (m.in_place || !channel.arrived(k) || channel.check(k) != comm::status::ok) return;
        if (broken_from == m.peer) return;
        if (!is_intact(m, channel.received(k))) return; // finish() will report it
        take_out(m, channel.received(k));
        note(m);
    });
}

void region_plan::state::add_all() noexcept {
    const std::uint64_t before = comm::ticks();
    channels.for_each([&](auto& channel) {
        region_message& m = messages[channel.index()];
        m.arrived = channel.received(epoch + 1);
        (void)is_intact(m, m.arrived);
    });
    if (broken_from >= 0) return;        // nothing is added
    for (region_message& m : messages) { // by peer, whatever the transports
        unpack(m, m.arrived);
        note(m);
    }
    times.note_unpacking(comm::ticks() - before);
}

void region_plan::state::note(region_message& m) noexcept {
    m.in_place = true;
    for (const int i : m.receives) reported.push_back(i);
}

} // namespace halocline::halo
