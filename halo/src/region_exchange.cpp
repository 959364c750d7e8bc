// SPDX-License-Identifier: Apache-2.0
#include "region_exchange.hpp"

#include "box_layers.hpp"
#include "message_stores.hpp"
#include "path_model.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/clock.hpp>
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

region_plan::state::state(const comm::job& j, const std::vector<transfer>& sends, const std::vector<transfer>& receives,
                          std::vector<binding> fields, region_plan_options choices)
    : job(j), options(std::move(choices)), bindings(std::move(fields)),
      threads(std::make_shared<copying_team>(team_patience(j.options().deadline))) {
    options.checksums = options.checksums || job.options().checksums;
    seal = message_seal(job, options.checksums);
    job.collectively([&] {
        if (bindings.empty()) throw input_error("'" + options.name + "': no field is bound");
    });
    messages = make_messages(job, sends, receives, bindings, options);
    format = {options.format, static_cast<float>(options.scale)};
    for (const field_view& f : bindings.front().source) site_bytes += format.bytes(f.shape);
    job.collectively([&] { refuse_wrapping_sizes(); });
    std::vector<watched_bytes> direct, by_slot;
    for (region_message& m : messages) {
        direct.push_back({&m.watch, m.out_at.back()});
        by_slot.push_back({m.by_slot ? &m.by_slot->watch : &m.watch, m.out_at.back()});
    }
    limit_claims(direct);
    limit_claims(by_slot);
    piece_bytes = least_piece_bytes(comm::measured_costs(job));
    for (const region_message& m : messages) most_sites = std::max({most_sites, m.send_sites, m.receive_sites});
    joint = std::ranges::any_of(messages, &region_message::joint);
    slab = job.memory().base();
    make_channels();
    times = exchange_times(job, channels);
    if (std::ranges::any_of(messages, &region_message::is_watched)) looks = look_times(comm::ticks());
    reported.reserve(receives.size());
}

void region_plan::state::refuse_wrapping_sizes() const {
    for (const region_message& m : messages) {
        const std::string what = "'" + options.name + "': the message between rank " + std::to_string(job.rank()) +
                                 " and rank " + std::to_string(m.peer) + ", ";
        refuse_wrapping_size(what, static_cast<std::size_t>(std::max(m.send_sites, m.receive_sites)), site_bytes);
    }
}

void region_plan::state::make_channels() {
    std::vector<comm::channel_request> requests;
    for (const region_message& m : messages) // one end per peer, identified by the peer's rank
        requests.push_back({.peer = m.peer,
                            .key = static_cast<std::uint32_t>(m.peer),
                            .peer_key = static_cast<std::uint32_t>(job.rank()),
                            .send_bytes = m.out_at.back() + seal.bytes(),
                            .receive_bytes = m.in_at.back() + seal.bytes(),
                            .label = "values",
                            .kind = m.channel_kind(),
                            .writes = m.writes,
                            .fields = m.registered});
    comm::channel_set_options set_options{.name = options.name, .shape = {}, .written_by_peers = {}};
    const auto is_direct = [](const region_message& m) { return m.path == path::direct; };
    const bool near =
        std::ranges::any_of(messages, [&](const region_message& m) { return is_direct(m) && !m.registered; });
    for (std::size_t b = 0; near && b < bindings.size(); ++b)
        for (const field_view& f : bindings[b].destination) set_options.written_by_peers.push_back(f.data);
    for (region_message& m : messages) m.registered = nullptr; // the channels own it now
    channels = comm::channel_set(job, requests, set_options);
    first_source = static_cast<std::uint32_t>(bindings.size() * bindings.front().destination.size());
    if (std::ranges::any_of(messages, is_direct)) work_in_every_wait();
    begins_with(*this);
}

void region_plan::state::begins_with(const state& first) {
    channels.find_crossed_waits(&first, [](const void* s) { return static_cast<const state*>(s)->started_; });
}

void region_plan::state::start(int which) noexcept {
    if (!status.is_ok()) return;
    if (started()) return status.misuse("start() before finish() of the last exchange");
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
    channels.prepare(k);
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
            look_at(m, message + m.out_at.back() / 2);
            pack(m, m.by_slot->out, m.by_slot->watch, message);
            channel.send_by_slot(k, stamp);
            --unsent;
        }
    });
    channels.for_each([&](auto& channel) {
        region_message& m = messages[channel.index()];
        m.in_place = false;
        look_at(m, channel.target(k) + m.probed_byte);
        pack(m, m.out, m.watch, channel.target(k));
        seal.put(channel.target(k), m.out_at.back(), k);
        channel.send(k, stamp);
    });
    started_ = k;
    driver.store(comm::thread_mark(), std::memory_order_relaxed);
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
            look_at(m, channel.memory() + m.targets[channel.peer_field()][0] + m.probed_byte);
            channel.offer(k, source);
        }
    });
}

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
            look_at(m, channel.memory() + targets[0] + m.probed_byte);
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

bool region_plan::state::is_intact(const region_message& m, const std::byte* message) noexcept {
    if (seal.is_intact(message, m.in_at.back(), epoch + 1)) return true;
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

bool region_plan::state::has_arrived() noexcept {
    if (!status.is_ok() || !started()) return true;
    if (!options.add) advance();
    return channels.has_arrived(epoch + 1);
}

bool region_plan::state::test() noexcept { return has_arrived() || channels.test(epoch + 1); }

void region_plan::state::wait() noexcept {
    const std::uint64_t k = epoch + 1;
    const auto arrives_soon = [&] {
        const bool sent = unsent == 0 || channels.spin([&] {
            send_direct();
            return unsent == 0;
        });
        if (joint) help(); // after what peers wait for
        return sent && channels.arrives_soon(k);
    };
    (void)status.end(times.wait(channels, k, arrives_soon, [&] {
        finishing = true;
        const comm::status result = channels.wait(k); // copies what is freed meanwhile, in work()
        finishing = false;
        return result;
    }));
}

comm::status region_plan::state::finish() noexcept {
    if (status.is_ok() && !started()) status.misuse("finish() without start()");
    if (status.is_ok()) {
        driver.store(comm::thread_mark(), std::memory_order_relaxed);
        wait();
    }
    if (status.is_ok()) {
        if (options.add)
            add_all();
        else
            advance();
        if (broken_from >= 0) (void)status.end(comm::status::wrong_data);
    }
    if (!status.is_ok()) {
        leave();
        return status.load();
    }
    driver.store(nullptr, std::memory_order_relaxed);
    times.note_finish();
    ++epoch;
    review_paths();
    return status.load();
}

void region_plan::state::leave() noexcept {
    (void)status.end(comm::status::aborted); // unless it has a status of its own
    driver.store(nullptr, std::memory_order_relaxed);
    if (!left.exchange(true, std::memory_order_acq_rel)) channels.leave();
}

} // namespace halocline::halo
