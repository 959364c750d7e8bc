// SPDX-License-Identifier: Apache-2.0
// Decides, again and again, whether messages to or from a peer are streamed. Hosts move virtual cores together and
// apart, and then cache lines cost several times as much or as little. So a rank measures now and then how long it
// takes to get a line that the peer used last (take_line.hpp), and scales the job's costs by that
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

/// Two bounds on the time of a line, in ticks: messages of one shape begin to be streamed above the upper one, and
/// cease to be below the lower one (hysteresis).
class streaming_bounds {
  public:
    /// No bounds: what is streamed stays so, and what is not stays so.
    streaming_bounds() = default;
    /// From measured costs. No bounds either if c was not measured, or if the message fills no whole line.
    streaming_bounds(const costs& c, const written_lines& lines);

    [[nodiscard]] bool known() const noexcept { return direct_below_ > 0; }
    /// False if no time of a line would make streaming pay.
    [[nodiscard]] bool reachable() const noexcept { return streamed_above_ != never; }
    [[nodiscard]] bool streamed(bool now, std::uint64_t ticks) const noexcept {
        return now ? ticks >= direct_below_ : ticks > streamed_above_;
    }
    /// "streamed when a line takes more than 83 ns, direct below 62 ns"; "" if nothing is known.
    [[nodiscard]] std::string describe() const;

  private:
    static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t streamed_above_ = never, direct_below_ = 0;
};

/// The second smallest of some readings. Not a mean, because interruptions make readings larger; not the smallest,
/// because once in a while a line is here by chance.
class second_least {
  public:
    void read(std::uint64_t ticks) noexcept {
        second_ = std::min(second_, std::max(least_, ticks));
        least_ = std::min(least_, ticks);
    }
    /// Begins again.  Pre: two readings or more.
    std::uint64_t take() noexcept {
        least_ = none;
        return std::exchange(second_, none);
    }

  private:
    static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t least_ = none, second_ = none;
};

/// Messages and puts to one peer share a decision: all of this size or more are written as is best for exactly this
/// size.
inline constexpr std::size_t least_streamed = 32 * 1024;

/// Decides whether messages of one size are streamed.
class streaming_watch {
  public:
    /// Never streamed.
    streaming_watch() = default;
    /// Streamed at first, or not; it stays so where c was not measured.
    streaming_watch(const costs& c, std::size_t bytes, bool streamed);

    [[nodiscard]] bool watches() const noexcept { return bounds_.known(); }
    [[nodiscard]] bool streamed() const noexcept { return streamed_; }
    /// A line took so many ticks to come back. Every fourth reading decides. Then there is nothing to read for 10 ms.
    void read(std::uint64_t ticks, std::uint64_t now) noexcept {
        readings_.read(ticks);
        if (++count_ < in_a_row) return;
        streamed_ = bounds_.streamed(streamed_, readings_.take());
        count_ = 0;
        next_ = now + pause_;
    }
    [[nodiscard]] bool due(std::uint64_t now) const noexcept { return watches() && now >= next_; }
    [[nodiscard]] std::string describe() const { return bounds_.describe(); }

  private:
    static constexpr int in_a_row = 4;
    streaming_bounds bounds_;
    second_least readings_;
    std::uint64_t next_ = 0, pause_ = 0;
    int count_ = 0;
    bool streamed_ = false;
};

} // namespace halocline::comm
