// SPDX-License-Identifier: Apache-2.0
// Checks now and then whether the path chosen for a message is still the better one. Hosts move virtual cores together
// and apart, which changes the cost of a cache line several-fold. So a sender measures how long a line of the message
// takes to come back, and scales the job's costs by that (docs/decisions/0032-paths-follow-the-machine.md).
#pragma once

#include <halocline/comm/clock.hpp>
#include <halocline/comm/costs.hpp>
#include <halocline/comm/detail/streaming_watch.hpp>
#include <halocline/comm/detail/take_line.hpp>
#include <halocline/halo/path.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace halocline::halo {

/// Decides for one message, over and over, whether it is streamed and, if not, whether its lines are claimed first
/// (claim_lines.hpp). Knows, for who writes it, whether short runs are gathered otherwise.
class path_watch {
  public:
    /// Watches nothing: the message always goes through the cache, and none of its lines are claimed.
    path_watch() = default;
    /// Watches one message. Nothing is watched if costs were not measured (all ranks share one core); a path that was
    /// asked for never changes (claims_only()). No line is ever claimed where that does not pay.
    path_watch(const comm::costs& c, const comm::written_lines& lines, bool streamed);
    static path_watch claims_only(const comm::costs& c);
    /// Decides whether the cores are far apart: streamed() while they are.  Pre: c was measured.
    static path_watch of_distance(const comm::costs& c);
    /// Watches nothing: the message always goes through the cache, its lines claimed if that pays on this machine.
    static path_watch always_cached(const comm::costs& c) noexcept;
    /// The message is always streamed.
    static path_watch always_streamed() noexcept;

    [[nodiscard]] bool watches() const noexcept { return claimed_above_ > 0; }
    [[nodiscard]] bool streamed() const noexcept { return streamed_; }
    [[nodiscard]] halo::path path() const noexcept { return streamed_ ? path::streamed : path::direct; }
    /// True if it is streamed, or would be if lines became more expensive.
    [[nodiscard]] bool may_stream() const noexcept { return streamed_ || bounds_.reachable(); }
    /// True if lines are claimed before they are filled (unless streamed): always, never, or while the last reading
    /// found a line in another core's cache.
    [[nodiscard]] bool claims() const noexcept { return claims_; }
    /// True if claims() is true or may become so.
    [[nodiscard]] bool may_claim() const noexcept { return claims_ || (watches() && claimed_above_ != never); }
    /// From now on no line is claimed.
    void never_claim() noexcept {
        claims_ = false;
        if (watches()) claimed_above_ = never;
    }
    /// Are short runs gathered, so that memcpy writes them (unless lines are streamed or claimed)?
    [[nodiscard]] bool gathers() const noexcept { return gathers_; }
    /// From now on they are.
    void gather() noexcept { gathers_ = true; }
    /// Neither streamed, claimed nor gathered.
    [[nodiscard]] bool copies_plainly() const noexcept { return !streamed_ && !claims_ && !gathers_; }
    /// A line of the message took this many ticks to come back.
    void read(std::uint64_t ticks) noexcept { readings_.read(ticks); }
    /// Decides from the readings since the last decision. True if streamed() has changed.
    /// Pre: two readings or more, if watches().
    bool decide() noexcept {
        if (!watches()) return false;
        const std::uint64_t ticks = readings_.take();
        claims_ = ticks > claimed_above_;
        const bool was_streamed = std::exchange(streamed_, bounds_.streamed(streamed_, ticks));
        return streamed_ != was_streamed;
    }
    /// comm::streaming_bounds::describe(); "" if the path never changes.
    [[nodiscard]] std::string describe() const { return bounds_.describe(); }
    /// describe() without "streamed", for what follows the distance.
    [[nodiscard]] std::string describe_times() const { return bounds_.describe_times(); }

  private:
    static std::uint64_t least_claimed_ticks(const comm::costs& c);

    static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
    bool streamed_ = false, claims_ = false, gathers_ = false;
    std::uint64_t claimed_above_ = 0; // ticks; 0: nothing is watched
    comm::streaming_bounds bounds_;
    comm::second_least readings_;
};

/// When a plan measures: during 4 exchanges in a row, then not for 256 times as long as that took, but at least 0.2 and
/// at most 10 ms.
class look_times {
  public:
    /// Never.
    look_times() = default;
    explicit look_times(std::uint64_t now)
        : next_(now), least_pause_(static_cast<std::uint64_t>(0.2e-3 / comm::seconds_per_tick())) {}

    [[nodiscard]] bool due(std::uint64_t now) const noexcept { return now >= next_; }
    /// Measures how far away the peer is, in ticks, by a byte of a message and one of its label's line. The line of the
    /// message may never have left this core; or it has left all caches, and what it takes is the distance of the
    /// memory. The peer polls the label, so the lesser of the two tells.  Pre: both are about to be written anyway.
    std::uint64_t look(std::byte* of_message, std::byte* of_label) noexcept {
        const std::uint64_t message = comm::ticks_to_take(of_message), label = comm::ticks_to_take(of_label);
        spent_ += message + label;
        return std::min(message, label);
    }
    /// All messages have been measured. True after the last time in a row: decide.
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
