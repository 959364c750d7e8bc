// SPDX-License-Identifier: Apache-2.0
// The sending half of a region_plan's exchange.
#include "region_exchange.hpp"

#include "message_stores.hpp"
#include "message_sum.hpp"

#include <halocline/comm/detail/stream_bytes.hpp>

#include <atomic>

namespace halocline::halo {
namespace {

/// Writes sites [first, last) of a field by that copy: to their places in a storage that begins at `to`, the peer's field
/// or a message's part.
void put(const site_copy& out, const path_watch& watch, const field_view& source, std::byte* to, std::int64_t first,
         std::int64_t last) noexcept {
    const auto copy = [&](std::int64_t begin, std::int64_t end) {
        out.copy(source.data, to, source.shape, begin, end);
    };
    if (watch.streamed()) return out.stream(source.data, to, source.shape, first, last);
    if (!watch.claims()) return copy(first, last);
    claim_by_blocks(
        8192, source.shape.bytes(), first, last,
        [&](std::int64_t begin, std::int64_t end) { out.claim(to, source.shape, begin, end); }, copy);
}

/// Writes them into the part of a message that begins at `part`, shown to see() as by fill_sites().
template <class See>
void pack_part(const site_copy& out, const path_watch& watch, const field_view& source, real_format as, std::byte* part,
               std::int64_t first, std::int64_t last, See&& see) noexcept {
    const std::size_t site_bytes = as.bytes(source.shape);
    if (!as.converts() && site_bytes <= largest_assembled_site)
        return fill_sites(
            watch, site_bytes, first, last, part,
            [&](std::byte* start, std::int64_t begin, std::int64_t end) {
                out.copy(source.data, start, source.shape, begin, end);
            },
            see);
    if (as.converts())
        put_converted(source, out, as, part, first, last);
    else
        put(out, watch, source, part, first, last);
    const std::size_t begin = static_cast<std::size_t>(first) * site_bytes;
    see(part + begin, static_cast<std::size_t>(last - first) * site_bytes, begin);
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
            (void)pack(m, m.by_slot->out, m.by_slot->watch, message);
            channel.send_by_slot(k, stamp);
            --unsent;
        }
    });
    channels.for_each([&](auto& channel) {
        region_message& m = messages[channel.index()];
        m.in_place = false;
        look_at(channel, m, channel.target(k) + m.probed_byte);
        const std::uint64_t sum = pack(m, m.out, m.watch, channel.target(k));
        if (seal.seals()) message_seal::put(channel.target(k) + m.out_at.back(), sum, k);
        channel.send(k, stamp);
    });
    started_ = k;
    driver.take_over();
    if (unsent > 0) send_direct();
    times.note_start(stamp);
}

std::uint64_t region_plan::state::pack(const region_message& m, const std::vector<site_copy>& out,
                                       const path_watch& watch, std::byte* message) const noexcept {
    const std::vector<field_view>& source = bindings[bound].source;
    std::atomic<std::uint64_t> sum{0};
    by_team(m.send_sites, [&](std::int64_t first, std::int64_t last) noexcept {
        std::uint64_t of_piece = 0;
        for (std::size_t f = 0; f < source.size(); ++f) {
            const auto add = [&](const std::byte* written, std::size_t bytes, std::size_t offset) {
                if (seal.seals()) of_piece += message_sum(written, bytes, m.out_at[f] + offset);
            };
            pack_part(out[f], watch, source[f], format, message + m.out_at[f], first, last, add);
        }
        if (watch.streamed()) comm::finish_streams();
        if (seal.seals()) sum.fetch_add(of_piece, std::memory_order_relaxed);
    });
    return sum.load(std::memory_order_relaxed);
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
                put(m.out[f], m.watch, source[f], channel.memory() + targets[f], first, last);
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
