// SPDX-License-Identifier: Apache-2.0
// An exchange of a halo plan, from the filled messages to the ghosts. The part of start() that packs is in plan.hpp.
#include <halocline/halo/plan.hpp>

#include "crew.hpp"
#include "message_checksum.hpp"

#include <algorithm>
#include <cstring>

namespace halocline::halo {

std::byte* plan::target(face f) noexcept {
    const auto message = static_cast<std::size_t>(message_of(f));
    std::byte* target = nullptr;
    channels_.for_each([&](auto& channel) {
        if (channel.index() == message) target = channel.target(epoch_ + 1);
    });
    return target;
}

void plan::start_bytes(const std::byte* values, team t) noexcept {
    if (options_.order || options_.fields != 1) {
        if (t.index == 0 && status_ == comm::status::ok) status_ = comm::status::misused;
        return;
    }
    const site_shape shape{.components = 1, .component_bytes = options_.bytes_per_site};
    start_by(
        [&](auto& channel, std::uint64_t epoch, std::int64_t first, std::int64_t last) noexcept {
            const std::size_t message = channel.index();
            std::byte* const target = channel.target(epoch);
            if (streams(message)) return stream_sites(values, nullptr, shape, message, first, last, target);
            claim_sites(message, first, last, target);
            copy_sites(values, nullptr, shape, message, first, last, target);
        },
        t);
}

void plan::start_filled(team t) noexcept {
    start_by([](auto&, std::uint64_t, std::int64_t, std::int64_t) noexcept {}, t);
}

void plan::seal(std::byte* message, std::size_t sites, std::uint64_t epoch) noexcept {
    const std::size_t bytes = sites * options_.bytes_per_site * static_cast<std::size_t>(options_.fields);
    const std::uint32_t sum = message_checksum(message, bytes, epoch);
    std::memcpy(message + bytes, &sum, sizeof sum);
}

bool plan::is_sealed(const std::byte* message, std::size_t sites, std::uint64_t epoch) const noexcept {
    const std::size_t bytes = sites * options_.bytes_per_site * static_cast<std::size_t>(options_.fields);
    const std::uint32_t sum = message_checksum(message, bytes, epoch);
    return std::memcmp(message + bytes, &sum, sizeof sum) == 0;
}

bool plan::test() noexcept {
    if (status_ != comm::status::ok || team_->started.load(std::memory_order_acquire) == epoch_) return true;
    const std::uint64_t before = comm::ticks();
    const bool arrived = channels_.test(epoch_ + 1);
    times_.waited(comm::ticks() - before);
    return arrived;
}

comm::status plan::finish(team t) noexcept {
    if (t.size == 1) return wait();
    // Everybody notes the round before the last one can end it.
    const std::uint64_t round = team_->released.load(std::memory_order_relaxed);
    team_->waiting.fetch_add(1, std::memory_order_acq_rel);
    if (t.index != 0) {
        await_team([&] { return team_->released.load(std::memory_order_acquire) != round; });
        return status_;
    }
    if (status_ == comm::status::ok)
        await_team([&] { return team_->started.load(std::memory_order_acquire) != epoch_; });
    const comm::status now = wait();
    await_team([&] { return team_->waiting.load(std::memory_order_acquire) == t.size; });
    team_->waiting.store(0, std::memory_order_relaxed);
    team_->released.store(round + 1, std::memory_order_release);
    return now;
}

comm::status plan::wait() noexcept {
    if (status_ != comm::status::ok || team_->started.load(std::memory_order_relaxed) == epoch_) return status_;
    const std::uint64_t epoch = epoch_ + 1;
    if (!times_.polled(epoch, [&] { return channels_.soon(epoch); })) {
        const std::uint64_t before = comm::ticks();
        status_ = channels_.wait(epoch);
        const std::uint64_t waited = comm::ticks() - before;
        times_.waited(waited);
        if (status_ != comm::status::ok) return status_;
        if (exchange_times::timed(epoch)) times_.was_late(std::min(waited, lateness(epoch, before)));
    }
    channels_.for_each([&](const auto& channel) {
        const plan_message& m = messages_[channel.index()];
        ghosts_[m.where.index()] = channel.received(epoch);
        if (seal_bytes() > 0 && !is_sealed(channel.received(epoch), static_cast<std::size_t>(m.ghost_sites), epoch))
            broken_seal_ = static_cast<int>(channel.index());
    });
    if (broken_seal_ >= 0) return status_ = comm::status::wrong_data;
    times_.finished();
    epoch_ = epoch;
    if (looks_.due(timed_at_)) look_at_paths();
    return status_;
}

std::uint64_t plan::lateness(std::uint64_t epoch, std::uint64_t waiting_since) const noexcept {
    std::uint64_t late = 0;
    channels_.for_each([&](const auto& channel) {
        const std::uint64_t started = same_clock_[channel.index()] ? channel.header(epoch).start_stamp : 0;
        if (started > waiting_since) late = std::max(late, started - waiting_since);
    });
    return late;
}

std::span<const face> plan::completed() noexcept {
    const bool in_flight = team_->started.load(std::memory_order_acquire) != epoch_;
    const std::uint64_t epoch = in_flight ? epoch_ + 1 : epoch_;
    std::size_t n = 0;
    if (status_ == comm::status::ok && epoch > 0)
        channels_.for_each([&](auto& channel) {
            const face f = messages_[channel.index()].where;
            if (reported_[f.index()] == epoch) return;
            if (in_flight) {
                if (!channel.arrived(epoch) || channel.check(epoch) != comm::status::ok) return;
                const std::byte* message = channel.received(epoch);
                const auto sites = static_cast<std::size_t>(messages_[channel.index()].ghost_sites);
                if (seal_bytes() > 0 && !is_sealed(message, sites, epoch)) return; // finish() will say so
                ghosts_[f.index()] = message;
            }
            reported_[f.index()] = epoch;
            completed_[n++] = f;
        });
    if (in_flight && n == 0) channels_.give_way();
    return {completed_.data(), n};
}

void plan::finish_or_throw() {
    const comm::status s = finish();
    if (s == comm::status::ok) return;
    if (unfit_) throw_unfit();
    if (s == comm::status::misused)
        throw input_error("halo '" + options_.name +
                          "': start_bytes() sends one field in lexicographic order; the plan was made for " +
                          (options_.order ? "another order" : std::to_string(options_.fields) + " fields"));
    if (broken_seal_ < 0) job_.fail(s, "halo " + channels_.pending(epoch_ + 1));
    const plan_message& m = messages_[static_cast<std::size_t>(broken_seal_)];
    job_.fail(s, "halo '" + options_.name + "' epoch " + std::to_string(epoch_ + 1) + ": what arrived behind " +
                     lattice::to_string(m.where) + " from rank " + std::to_string(m.peer) +
                     " does not have the checksum that it was sent with");
}

} // namespace halocline::halo
