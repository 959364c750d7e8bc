// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/detail/exchange_times.hpp>

namespace halocline::halo {

exchange_times::exchange_times(const comm::job& j, const comm::channel_set& channels) : same_clock_(channels.size()) {
    const auto host = [&](int rank) -> const auto& { return j.members()[rank].host; };
    for (std::size_t i = 0; i < same_clock_.size(); ++i)
        same_clock_[i] = host(channels.request(i).peer) == host(j.rank());
}

std::uint64_t exchange_times::lateness(const comm::channel_set& channels, std::uint64_t epoch,
                                       std::uint64_t waiting_since) const noexcept {
    std::uint64_t late = 0;
    const auto note = [&](const auto& channel) {
        const std::uint64_t started = same_clock_[channel.index()] ? channel.label(epoch).start_stamp : 0;
        if (started > waiting_since) late = std::max(late, started - waiting_since);
    };
    channels.for_each(note);
    channels.for_each_direct(note);
    channels.for_each_rdma(note);
    return late;
}

plan_statistics exchange_times::statistics(const comm::channel_set& channels) const {
    const counts& c = counts_;
    const auto of_all = [&](std::uint64_t ticks, std::uint64_t times) {
        return times == 0 ? 0.0 : comm::seconds(ticks) * static_cast<double>(c.exchanges) / static_cast<double>(times);
    };
    const double wait_seconds = of_all(c.poll, c.polls) + comm::seconds(c.wait);
    return {.exchanges = c.exchanges,
            .pack_seconds = of_all(c.pack, c.packs),
            .wait_seconds = wait_seconds,
            .unpack_seconds = comm::seconds(c.unpack),
            .imbalance_seconds = std::min(of_all(c.imbalance, c.polls), wait_seconds),
            .path_changes = c.path_changes,
            .pieces_helped = channels.pieces_helped() - helped_before_,
            .waits_yielded = channels.waits_yielded() - yielded_before_,
            .by_transport = channels.counts(c.exchanges)};
}

} // namespace halocline::halo
