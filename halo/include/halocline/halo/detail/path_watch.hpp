// SPDX-License-Identifier: Apache-2.0
// Checks now and then whether the path that was chosen for a message is still the better one. Hosts move virtual cores
// together and apart, and then cache lines cost several times as much or as little. So a sender measures how long a
// line of the message takes to come back, and scales the job's costs by that
// (docs/decisions/0032-paths-follow-the-machine.md).
#pragma once

#include <halocline/comm/clock.hpp>
#include <halocline/comm/costs.hpp>
#include <halocline/comm/streaming_watch.hpp>
#include <halocline/comm/take_line.hpp>
#include <halocline/halo/path.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace halocline::halo {

/// Says for one message whether it is streamed and, if not, whether its lines are claimed first (claim_lines.hpp); and
/// decides that again.
class path_watch {
  public:
    /// A message that always goes through the cache, and nothing of it is claimed.
    path_watch() = default;
    /// Its path stays where costs were not measured (all ranks share one core), or where it was asked for:
    /// claims_only().
    path_watch(const comm::costs& c, const comm::written_lines& lines, bool streamed);
    static path_watch claims_only(const comm::costs& c);
    /// One that is always claimed.
    static path_watch always_claimed() noexcept;
    /// One that is always streamed.
    static path_watch always_streamed() noexcept;

    [[nodiscard]] bool watches() const noexcept { return claimed_above_ > 0; }
    [[nodiscard]] bool streamed() const noexcept { return streamed_; }
    [[nodiscard]] halo::path path() const noexcept { return streamed_ ? path::streamed : path::direct; }
    /// True if it is streamed, or would be if lines got dearer.
    [[nodiscard]] bool may_stream() const noexcept { return streamed_ || bounds_.reachable(); }
    /// True if lines are claimed before they are filled (unless streamed): always, never, or while the last reading
    /// found a line in another core's cache.
    [[nodiscard]] bool claims() const noexcept { return claims_; }
    /// True if claims() is or may become true.
    [[nodiscard]] bool may_claim() const noexcept { return claims_ || (watches() && claimed_above_ != never); }
    /// No line is claimed from now on.
    void never_claim() noexcept {
        claims_ = false;
        if (watches()) claimed_above_ = never;
    }
    /// A line of the message took so many ticks to come back.
    void read(std::uint64_t ticks) noexcept { readings_.read(ticks); }
    /// Decides by the readings since the last decision. True if streamed() is another.
    /// Pre: two readings or more, if watches().
    bool decide() noexcept {
        if (!watches()) return false;
        const std::uint64_t ticks = readings_.take();
        claims_ = ticks > claimed_above_;
        return std::exchange(streamed_, bounds_.streamed(streamed_, ticks)) != streamed_;
    }
    /// comm::streaming_bounds::describe(); "" if the path stays.
    [[nodiscard]] std::string describe() const { return bounds_.describe(); }

  private:
    static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
    bool streamed_ = false, claims_ = false;
    std::uint64_t claimed_above_ = 0; // ticks; 0: nothing is watched
    comm::streaming_bounds bounds_;
    comm::second_least readings_;
};

/// When a plan measures: at 4 exchanges in a row, then not for 256 times as long as that took, but at least 0.2 and at
/// most 10 ms.
class look_times {
  public:
    /// Never.
    look_times() = default;
    explicit look_times(std::uint64_t now)
        : next_(now), least_pause_(static_cast<std::uint64_t>(0.2e-3 / comm::seconds_per_tick())) {}

    [[nodiscard]] bool due(std::uint64_t now) const noexcept { return now >= next_; }
    /// Looks how far away a byte of a message is, if that is watched.  Pre: it is about to be written anyway.
    void look(path_watch& watch, std::byte* byte) noexcept {
        if (!watch.watches()) return;
        const std::uint64_t ticks = comm::ticks_to_take(byte);
        watch.read(ticks);
        spent_ += ticks;
    }
    /// All messages were looked at. True at the last time in a row: decide.
    bool looked(std::uint64_t now) noexcept {
        if (++times_ < in_a_row) return false;
        times_ = 0;
        next_ = now + std::clamp(256 * std::exchange(spent_, 0), least_pause_, 50 * least_pause_);
        return true;
    }

  private:
    static constexpr int in_a_row = 4;
    std::uint64_t next_ = std::numeric_limits<std::uint64_t>::max(), least_pause_ = 0, spent_ = 0;
    int times_ = 0;
};

} // namespace halocline::halo
