// SPDX-License-Identifier: Apache-2.0
// Should messages to or from a peer be streamed, now? Hosts move virtual cores together and apart, and then cache lines
// cost several times as much or as little. So a rank looks now and then how long a line takes that the peer used last
// (take_line.hpp), and scales the job's costs by that (docs/decisions/0032-paths-follow-the-machine.md).
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

/// For messages of one size.
class streaming_watch {
  public:
    /// Never streamed.
    streaming_watch() = default;
    /// Streamed at first, or not; it stays so where c was not measured.
    streaming_watch(const costs& c, std::size_t bytes, bool streamed);

    [[nodiscard]] bool watches() const noexcept { return direct_below_ > 0; }
    [[nodiscard]] bool streamed() const noexcept { return streamed_; }
    /// A line took so many ticks to come back. Every fourth reading decides, by the second least of the four: what else
    /// happens adds, and once in a while a line is here by chance. Then there is nothing to read for 10 ms.
    void read(std::uint64_t ticks, std::uint64_t now) noexcept {
        second_ = std::min(second_, std::max(least_, ticks));
        least_ = std::min(least_, ticks);
        if (++readings_ < in_a_row) return;
        streamed_ = streamed_ ? second_ >= direct_below_ : second_ > streamed_above_;
        least_ = second_ = never;
        readings_ = 0;
        next_ = now + pause_;
    }
    [[nodiscard]] bool due(std::uint64_t now) const noexcept { return watches() && now >= next_; }
    /// "streamed when a line takes more than 83 ns, direct below 62 ns"; "" if nothing is watched.
    [[nodiscard]] std::string describe() const;

  private:
    static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();
    static constexpr int in_a_row = 4;
    std::uint64_t streamed_above_ = never, direct_below_ = 0;
    std::uint64_t least_ = never, second_ = never;
    std::uint64_t next_ = 0, pause_ = 0;
    int readings_ = 0;
    bool streamed_ = false;
};

} // namespace halocline::comm
