// SPDX-License-Identifier: Apache-2.0
// The templates of plan_core: start() packs by the caller's function, or from fields of the caller's type.
#pragma once

#include <halocline/halo/detail/plan_core.hpp>

#include <algorithm>

namespace halocline::halo {

template <class Pack>
void plan_core::start_packed(Pack& pack, team t) noexcept {
    const bool started = start_with(
        [&](std::size_t message, std::byte* target, std::int64_t first, std::int64_t last) noexcept {
            const auto pack_to = [&](std::byte* to) { pack(static_cast<int>(message), first, last, to); };
            return writers_[message].write_packed(pack_to, first, last, target);
        },
        t);
    if constexpr (requires {
                      pack.sources();
                      pack.packed_by();
                  })
        if (started && t.index == 0 && accepted_.fits(pack.sources().size()))
            note_sent(pack.sources(), pack.packed_by());
}

template <class Channel, class Fill>
void plan_core::fill_channel(Channel& channel, std::uint64_t epoch, Fill& fill) noexcept {
    for_each_message(channel, [&](std::size_t message) {
        const std::int64_t sites = writers_[message].sites();
        const auto fill_sites = [&](std::int64_t first, std::int64_t last) noexcept {
            if (first < last) fill_part(channel, epoch, message, first, last, fill);
        };
        if constexpr (comm::joint_channel<Channel>)
            if (channel.offers(epoch)) return channel.copy_offered(epoch, sites, fill_sites);
        fill_sites(0, sites);
    });
}

template <class Channel, class Fill>
void plan_core::fill_part(Channel& channel, std::uint64_t epoch, std::size_t message, std::int64_t first,
                          std::int64_t last, Fill& fill) noexcept {
    const std::uint64_t sum = fill(message, channel.target(epoch) + sent_at_[message], first, last);
    if (seal_.seals()) sums_[message].fetch_add(sum, std::memory_order_relaxed);
}

template <class Channel>
void plan_core::seal(Channel& channel, std::uint64_t epoch, packing whose) noexcept {
    if (!seal_.seals()) return; // finding the arguments takes longer than many a message
    for_each_message(channel, [&](std::size_t message) {
        std::byte* const values = channel.target(epoch) + sent_at_[message];
        const std::size_t bytes = writers_[message].bytes();
        const std::uint64_t sum = sums_[message].exchange(0, std::memory_order_relaxed);
        message_seal::put(values + bytes, whose == packing::by_caller ? message_seal::sum_of(values, bytes) : sum,
                          epoch);
    });
}

template <class Channel, class Fill>
void plan_core::fill_share(Channel& channel, std::uint64_t epoch, packing_share share, Fill& fill) noexcept {
    for_each_message(channel, [&](std::size_t message) {
        const std::int64_t sites = writers_[message].sites();
        const std::int64_t first = std::max<std::int64_t>(share.first, 0), last = std::min(share.last, sites);
        if (first < last) fill_part(channel, epoch, message, first, last, fill);
        share.first -= sites;
        share.last -= sites;
    });
}

template <class Fill>
bool plan_core::start_with(Fill&& fill, team t, packing whose, const comm::joint_source* source) noexcept {
    if (state() != comm::status::ok) return false;
    if (!t.is_member()) {
        refuse_thread(t);
        return false;
    }
    packing_team& threads = *team_;
    if (threads.in_flight(epoch_)) { // no member of a team sees that before all have called start()
        if (t.index == 0) status_.misuse("start() before finish() of the last exchange");
        return false;
    }
    const std::uint64_t epoch = epoch_ + 1, stamp = exchange_times::stamp(epoch);
    if (t.index == 0) {
        channels_.note_thread();
        channels_.prepare(epoch);
    }
    if (t.size == 1) {
        if (source != nullptr) offer(*source, epoch);
        channels_.for_each([&](auto& channel) {
            fill_channel(channel, epoch, fill);
            seal(channel, epoch, whose);
            channel.send(epoch, stamp); // before the next message is packed, so that the peer can already read this one
        });
        threads.note_started(epoch);
    } else if (t.index == 0 && !channels_.may_call_mpi()) {
        status_.misuse(needs_thread_level);
        return false;
    } else if (!start_as_member(fill, t, whose, stamp)) {
        return false;
    }
    if (t.index == 0) times_.note_start(stamp);
    return true;
}

template <class X, class Source>
bool plan_core::start_copying(std::span<X> xs, team t, Source&& source) noexcept {
    const auto fill = [&](std::size_t message, std::byte* target, std::int64_t first, std::int64_t last) noexcept {
        const message_writer& writer = writers_[message];
        std::uint64_t sum = 0;
        for (std::size_t f = 0; f < xs.size(); ++f) sum += writer.write(source(xs[f]), f, first, last, target);
        return sum;
    };
    if (!joint_.any() || t.size > 1) return start_with(fill, t); // a team's members copy together already
    comm::joint_source offered;
    const bool all = std::ranges::all_of(xs, [&](const X& x) {
        const source_field s = source(x);
        return joint_.add(offered, s, is_prepared_for(s.order));
    });
    return start_with(fill, t, packing::by_share, all ? &offered : nullptr);
}

template <class Fill>
bool plan_core::start_as_member(Fill&& fill, team t, packing whose, std::uint64_t stamp) noexcept {
    packing_team& threads = *team_;
    const std::uint64_t epoch = epoch_ + 1;
    if (t.index == 0) threads.note_begun(t, epoch);
    const auto send = [&](std::uint32_t messages) {
        channels_.for_each([&](auto& channel) {
            if ((messages >> channel.index() & 1) != 0) channel.send(epoch, stamp);
        });
    };
    if (const comm::team_fault fault = threads.enter(t, epoch, send)) {
        refuse_thread(fault);
        return false;
    }
    std::uint32_t ready = 0; // not announced yet: short ones go together, because a counter costs as much
    std::size_t ready_bytes = 0;
    const auto announce = [&] {
        if (ready != 0) threads.announce(ready, epoch, send);
        ready = 0;
        ready_bytes = 0;
    };
    channels_.for_each([&](auto& channel) {
        const std::size_t index = channel.index();
        std::int64_t sites = 0;
        std::size_t bytes = 0;
        for_each_message(channel, [&](std::size_t message) {
            sites += writers_[message].sites();
            bytes += writers_[message].bytes();
        });
        const packing_share share =
            whose == packing::by_caller ? packing_share{.sharers = t.size} : share_of(index, sites, bytes, t);
        if (share.sharers == 0) return;
        fill_share(channel, epoch, share, fill);
        if (threads.note_packed(index, share.sharers)) {
            seal(channel, epoch, whose);
            ready |= std::uint32_t{1} << index;
            ready_bytes += bytes;
            if (ready_bytes >= packing_share::least_bytes) announce();
        }
        threads.send_packed(t, epoch, send);
    });
    announce();
    const comm::team_fault missing = threads.send_rest(t, epoch, send, [&] { return state() != comm::status::ok; });
    if (missing) refuse_thread(missing);
    return !missing;
}

template <class X>
void plan_core::start(std::span<X> xs, team t) noexcept {
    for (const X& x : xs)
        if (const source_field source = source_of(x); !accepted_.fits(source)) return refuse_fields(xs.size(), &source);
    if (!accepted_.fits(xs.size())) return refuse_fields(xs.size(), nullptr);
    if (!start_copying(xs, t, [](const X& x) { return source_of(x); }) || t.index != 0) return;
    note_sent(xs, 0);
    order_prepared_ = is_prepared_for(source_of(xs.front()).order);
}

template <class X>
void plan_core::note_sent(std::span<X> xs, std::uint64_t packed_by) noexcept {
    sent_fields& next = sent_[(epoch_ + 1) % 2];
    const bool summed = options_.checks >= check_level::normal;
    for (std::size_t i = 0; i < next.fields.size(); ++i) {
        const source_field source = source_of(xs[i]);
        next.fields[i] = {source.values, version_of(xs[i]), epoch_ + 1, summed ? checksum(source) : 0};
    }
    next.packed_by = packed_by;
}

template <class X>
comm::status plan_core::told_fresh(std::span<X> xs, team t) noexcept {
    const auto check = [&] {
        for (std::size_t i = 0; i < xs.size() && options_.checks >= check_level::normal; ++i) {
            const source_field source = source_of(xs[i]);
            const auto sum = [&] { return checksum(source); };
            if (sent().fields[i].why_stale(source.values, version_of(xs[i]), epoch_, sum) != nullptr)
                status_.misuse("ensure_halo() of a field that was written since its exchange, without mark_written()");
        }
    };
    if (!t.is_member())
        refuse_thread(t);
    else if (t.size == 1)
        check();
    else if (const comm::team_fault fault = team_->finish(t, check))
        refuse_thread(fault);
    if (t.index == 0) leave_if_failed();
    return status_.tell();
}

template <class X>
void plan_core::require_fresh(std::span<X> xs) const {
    if (xs.size() != sent().fields.size()) throw_other_number(xs.size());
    for (std::size_t i = 0; i < xs.size(); ++i) require_fresh(source_of(xs[i]), version_of(xs[i]), i, i + 1);
}

} // namespace halocline::halo
