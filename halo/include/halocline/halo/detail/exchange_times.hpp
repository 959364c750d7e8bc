// SPDX-License-Identifier: Apache-2.0
// A plan's counters, and the clock readings behind its statistics. A reading costs as much as a small message, so only
// every seventh exchange is timed and stands for the others; waits of more than a microsecond are always timed. Seven,
// because programs that alternate between kinds of exchanges seldom do so with that period.
#pragma once

#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/clock.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/status.hpp>
#include <halocline/halo/plan_statistics.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace halocline::halo {

class exchange_times {
  public:
    exchange_times() = default;
    /// Times the exchanges over these channels.
    exchange_times(const comm::job& j, const comm::channel_set& channels);

    /// True if this exchange is timed; its messages then carry the time of start(). Equal on all ranks.
    [[nodiscard]] static constexpr bool timed(std::uint64_t epoch) noexcept { return epoch % timed_every == 1; }
    /// The clock at the start of a timed exchange; 0 for others.
    [[nodiscard]] static std::uint64_t stamp(std::uint64_t epoch) noexcept { return timed(epoch) ? comm::ticks() : 0; }
    /// The stamp of the last timed exchange.
    [[nodiscard]] std::uint64_t last_stamp() const noexcept { return last_stamp_; }

    /// Counts the time since `stamp` as packing; does nothing for 0.
    void note_start(std::uint64_t stamp) noexcept {
        if (stamp == 0) return;
        last_stamp_ = stamp;
        counts_.pack += comm::ticks() - stamp;
        ++counts_.packs;
    }
    /// Waits for an exchange: poll(), which takes at most a microsecond and returns whether all has arrived, then
    /// wait().
    template <class Poll, class Wait>
    comm::status wait(const comm::channel_set& channels, std::uint64_t epoch, Poll&& poll, Wait&& wait) noexcept {
        if (polled(epoch, poll)) return comm::status::ok;
        const std::uint64_t before = comm::ticks();
        const comm::status result = wait();
        const std::uint64_t ticks = comm::ticks() - before;
        note_wait(ticks);
        if (timed(epoch) && result == comm::status::ok)
            counts_.imbalance += std::min(ticks, lateness(channels, epoch, before));
        return result;
    }
    void note_wait(std::uint64_t ticks) noexcept { counts_.wait += ticks; }
    void note_unpacking(std::uint64_t ticks) noexcept { counts_.unpack += ticks; }
    void note_path_change() noexcept { ++counts_.path_changes; }
    void note_finish() noexcept { ++counts_.exchanges; }

    /// Totals since construction or reset().
    [[nodiscard]] plan_statistics statistics(const comm::channel_set& channels) const;
    void reset(const comm::channel_set& channels) {
        counts_ = {};
        yielded_before_ = channels.waits_yielded();
        helped_before_ = channels.pieces_helped();
    }

  private:
    static constexpr std::uint64_t timed_every = 7;
    template <class Poll>
    bool polled(std::uint64_t epoch, Poll&& poll) noexcept {
        if (!timed(epoch)) return poll();
        const std::uint64_t before = comm::ticks();
        const bool result = poll();
        counts_.poll += comm::ticks() - before;
        ++counts_.polls;
        return result;
    }
    /// Ticks from `waiting_since` until the last peer on this host had started.  Pre: all has arrived.
    [[nodiscard]] std::uint64_t lateness(const comm::channel_set& channels, std::uint64_t epoch,
                                         std::uint64_t waiting_since) const noexcept;

    struct counts {
        std::uint64_t exchanges = 0, path_changes = 0;
        std::uint64_t packs = 0, polls = 0;              // of timed exchanges
        std::uint64_t pack = 0, poll = 0, imbalance = 0; // ticks, of timed exchanges
        std::uint64_t wait = 0, unpack = 0;              // of all exchanges
    };
    counts counts_;
    std::uint64_t last_stamp_ = 0;
    std::uint64_t yielded_before_ = 0; // waits, at the last reset
    std::uint64_t helped_before_ = 0;  // pieces, at the last reset
    std::vector<bool> same_clock_;     // by channel: can the peer's stamps be compared with ours?
};

} // namespace halocline::halo
