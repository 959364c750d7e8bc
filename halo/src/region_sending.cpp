// SPDX-License-Identifier: Apache-2.0
// The sending half of a region_plan's exchange.
#include "region_exchange.hpp"

#include "message_stores.hpp"

#include <halocline/comm/detail/stream_bytes.hpp>

namespace halocline::halo {
namespace {

/// Writes sites [first, last) of a field by that copy: to their places in the peer's field at `to`, or in the part of the
/// message that begins there, which may be `assembled` (region_message::is_assembled).
void put(const site_copy& out, const path_watch& watch, bool assembled, const field_view& source, real_format as,
         std::byte* to, std::int64_t first, std::int64_t last) noexcept {
    if (as.converts()) return put_converted(source, out, as, to, first, last);
    const auto copy = [&](std::byte* start, std::int64_t begin, std::int64_t end) {
        out.copy(source.data, start, source.shape, begin, end);
    };
    if (assembled) return fill_sites(watch, source.shape.bytes(), first, last, to, copy);
    if (watch.streamed()) return out.stream(source.data, to, source.shape, first, last);
    if (!watch.claims()) return copy(to, first, last);
    claim_by_blocks(
        8192, source.shape.bytes(), first, last,
        [&](std::int64_t begin, std::int64_t end) { out.claim(to, source.shape, begin, end); },
        [&](std::int64_t begin, std::int64_t end) { copy(to, begin, end); });
}

} // namespace

void region_plan::state::begin(int which) noexcept {
    if (!status.is_ok()) return;
    if (started()) return status.misuse("start() before finish() of the last exchange");
    if (!may_drive()) return status.misuse(needs_thread_level);
    bound = which;
    if (which < 0 || static_cast<std::size_t>(which) >= bindings.size()) {
        (void)status.misuse(); // finish_or_throw() finds out why
        return;
    }
    const std::uint64_t k = epoch + 1;
    stamp = exchange_times::stamp(k);
    reported.clear();
    unreported = 0;
    unsent = 0;
    looking = looks.due(stamp != 0 ? stamp : times.last_stamp());
    channels.note_thread();
    if (!looking) channels.prepare(k);            // looks would find lines that are here already
    channels.for_each_direct([&](auto& channel) { // first, so that the peers can continue
        channel.free(k, static_cast<std::uint32_t>(which));
        messages[channel.index()].in_place = false;
        ++unsent;
    });
    const auto fields = static_cast<std::uint32_t>(bindings.front().source.size());
    channels.for_each_rdma([&](auto& channel) {
        channel.free(k, stamp, static_cast<std::uint32_t>(which) * fields);
        messages[channel.index()].in_place = false;
        ++unsent;
    });
    channels.for_each_direct([&]<class Channel>(Channel& channel) {
        if constexpr (comm::slotted_channel<Channel>) {
            region_message& m = messages[channel.index()];
            if (!m.goes_by_slot()) return;
            std::byte* const message = channel.slot_target(k);
            look_at(channel, m, message + m.out_at.back() / 2);
            pack(m, m.by_slot->out, m.by_slot->watch, message);
            channel.send_by_slot(k, stamp);
            --unsent;
        }
    });
    channels.for_each([&](auto& channel) {
        region_message& m = messages[channel.index()];
        m.in_place = false;
        look_at(channel, m, channel.target(k) + m.probed_byte);
        pack(m, m.out, m.watch, channel.target(k));
        seal.put(channel.target(k), m.out_at.back(), k);
        channel.send(k, stamp);
    });
    started_ = k;
    driver.take_over();
    if (unsent > 0) send_direct();
    times.note_start(stamp);
}

void region_plan::state::pack(const region_message& m, const std::vector<site_copy>& out, const path_watch& watch,
                              std::byte* message) const noexcept {
    const std::vector<field_view>& source = bindings[bound].source;
    by_team(m.send_sites, [&](std::int64_t first, std::int64_t last) noexcept {
        for (std::size_t f = 0; f < source.size(); ++f)
            put(out[f], watch, source[f].shape.bytes() <= largest_assembled_site, source[f], format,
                message + m.out_at[f], first, last);
        if (watch.streamed()) comm::finish_streams();
    });
}

void region_plan::state::offer() noexcept {
    const std::uint64_t k = epoch + 1;
    if (threads->size() > 1) return; // the members of a team copy together already
    comm::joint_source source;
    for (const field_view& f : bindings[bound].source) // Pre: no more than have room, if any message is offered
        if (source.fields < comm::joint_source::most_fields)
            source.places[source.fields++] = static_cast<std::uint64_t>(f.data - slab);
    channels.for_each_direct([&]<class Channel>(Channel& channel) {
        if constexpr (comm::joint_channel<Channel>) {
            region_message& m = messages[channel.index()];
            // A receiver would pull in the lines of a streamed message, which are far away.
            if (!m.offered || m.watch.streamed() || channel.given(k) || !channel.freed(k)) return;
            look_at(channel, m, channel.memory() + m.targets[channel.peer_field()][0] + m.probed_byte);
            channel.offer(k, source);
        }
    });
}

void region_plan::state::send_direct() noexcept {
    const std::uint64_t k = epoch + 1;
    const std::vector<field_view>& source = bindings[bound].source;
    if (joint) offer();
    channels.for_each_direct([&]<class Channel>(Channel& channel) {
        if (channel.given(k) || !channel.freed(k)) return;
        region_message& m = messages[channel.index()];
        const std::vector<std::size_t>& targets = m.targets[channel.peer_field()];
        const auto copy = [&](std::int64_t first, std::int64_t last) noexcept {
            for (std::size_t f = 0; f < source.size(); ++f)
                put(m.out[f], m.watch, false, source[f], format, channel.memory() + targets[f], first, last);
            if (m.watch.streamed()) comm::finish_streams();
        };
        const auto copy_all = [&] {
            if constexpr (comm::joint_channel<Channel>)
                if (channel.offers(k)) return channel.copy_offered(k, m.send_sites, copy);
            look_at(channel, m, channel.memory() + targets[0] + m.probed_byte);
            by_team(m.send_sites, copy);
        };
        copy_all();
        channel.send(k, stamp);
        --unsent;
    });
    channels.for_each_rdma([&](auto& channel) {
        if (channel.given(k) || !channel.freed(k)) return;
        channel.send(k, first_source + static_cast<std::uint32_t>(static_cast<std::size_t>(bound) * source.size()),
                     channel.peer_field(k));
        --unsent;
    });
}

void region_plan::state::review_paths() noexcept {
    if (!looking || !looks.looked(times.last_stamp())) return;
    for (region_message& m : messages) {
        if (!m.is_watched()) continue;
        bool changed = m.watch.decide() && !m.goes_by_slot();
        if (m.by_slot) {
            changed = (m.by_slot->watch.decide() && m.goes_by_slot()) || changed;
            changed = m.by_slot->distance.decide() || changed;
        }
        if (changed) times.note_path_change();
    }
}

} // namespace halocline::halo
