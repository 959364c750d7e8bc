// SPDX-License-Identifier: Apache-2.0
// Decides, over and over, whether messages to or from a peer are streamed. Hosts move virtual cores together and apart,
// which changes the cost of a cache line several-fold. So a rank measures now and then how long it takes to get a line
// that the peer used last (take_line.hpp), and scales the job's costs by that
// (docs/decisions/0032-paths-follow-the-machine.md).
#pragma once

#include <halocline/comm/clock.hpp>
#include <halocline/comm/costs.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace halocline::comm {

/// Two bounds on the time of a line, in ticks: messages of one shape start being streamed above the upper one, and stop
/// below the lower one (hysteresis).
class streaming_bounds {
  public:
    /// No bounds: whether messages are streamed never changes.
    streaming_bounds() = default;
    /// From measured costs. No bounds either if c was not measured, or if the message fills no whole line.
    streaming_bounds(const costs& c, const written_lines& lines);
    /// The bounds between near and far, for what does not follow the costs. None if c was not measured.
    [[nodiscard]] static streaming_bounds of_distance(const costs& c);

    [[nodiscard]] bool known() const noexcept { return direct_below_ > 0; }
    /// False if streaming would not pay whatever the time of a line.
    [[nodiscard]] bool reachable() const noexcept { return streamed_above_ != never; }
    [[nodiscard]] bool streamed(bool now, std::uint64_t ticks) const noexcept {
        return now ? ticks >= direct_below_ : ticks > streamed_above_;
    }
    /// "streamed when a line takes more than 83 ns, no longer below 62 ns"; "" if there are no bounds.
    [[nodiscard]] std::string describe() const;
    /// "when a line takes more than 83 ns, no longer below 62 ns"; "" if there are none.
    [[nodiscard]] std::string describe_times() const;

  private:
    static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t streamed_above_ = never, direct_below_ = 0;
};

/// The second smallest of some readings. Not a mean, because interruptions make readings larger; not the smallest,
/// because once in a while a line is already here by chance.
class second_least {
  public:
    void read(std::uint64_t ticks) noexcept {
        second_ = std::min(second_, std::max(least_, ticks));
        least_ = std::min(least_, ticks);
    }
    /// Returns it and begins again.  Pre: two readings or more.
    std::uint64_t take() noexcept {
        least_ = none;
        return std::exchange(second_, none);
    }

  private:
    static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t least_ = none, second_ = none;
};

/// All messages and puts to one peer share one decision, made for this size and applied to every larger one.
inline constexpr std::size_t least_streamed = 32 * 1024;

/// Decides whether messages of one size are streamed.
class streaming_watch {
  public:
    /// Never streamed.
    streaming_watch() = default;
    /// Streamed or not at first; that never changes if c was not measured.
    streaming_watch(const costs& c, std::size_t bytes, bool streamed);
    /// Decides whether the cores are far apart: streamed() while they are. Never if c was not measured.
    [[nodiscard]] static streaming_watch of_distance(const costs& c);

    [[nodiscard]] bool watches() const noexcept { return bounds_.known(); }
    [[nodiscard]] bool streamed() const noexcept { return streamed_; }
    /// A line took this many ticks to come back. Every fourth reading decides; then none is due for 10 ms.
    void read(std::uint64_t ticks, std::uint64_t now) noexcept {
        readings_.read(ticks);
        if (++count_ < in_a_row) return;
        streamed_ = bounds_.streamed(streamed_, readings_.take());
        count_ = 0;
        next_ = now + pause_;
    }
    [[nodiscard]] bool due(std::uint64_t now) const noexcept { return watches() && now >= next_; }
    [[nodiscard]] std::string describe() const { return bounds_.describe(); }
    /// describe() without "streamed", for what follows the distance.
    [[nodiscard]] std::string describe_times() const { return bounds_.describe_times(); }

  private:
    streaming_watch(const streaming_bounds& bounds, bool streamed);

    static constexpr int in_a_row = 4;
    streaming_bounds bounds_;
    second_least readings_;
    std::uint64_t next_ = 0, pause_ = 0;
    int count_ = 0;
    bool streamed_ = false;
};

} // namespace halocline::comm
