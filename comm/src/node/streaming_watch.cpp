// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/streaming_watch.hpp>

#include <array>
#include <cstdio>

namespace halocline::comm {

// With lines x times as far away as they were when costs were measured, a message takes
//   cached    x C                  every part of it is a line that goes back and forth
//   streamed  S + (x - 1) flag     only the flag is
// so streaming is better by a factor m from x = m (S - flag) / (C - m flag) on.
streaming_bounds::streaming_bounds(const costs& c, std::size_t bytes) {
    if (c.take_seconds == 0 || c.cached.seconds(bytes) == 0) return;
    const double cached = c.cached.seconds(bytes), past = c.streamed.seconds(bytes);
    const double flag = std::min({c.flag_seconds, c.cached.message_seconds, c.streamed.message_seconds});
    const auto better_from = [&](double margin) {
        const double gain = cached - margin * flag;
        const double x = gain > 0 ? margin * (past - flag) / gain : std::numeric_limits<double>::infinity();
        const double ticks = x * c.take_seconds / seconds_per_tick();
        return ticks < 1e12 ? std::max<std::uint64_t>(1, static_cast<std::uint64_t>(ticks)) : never;
    };
    streamed_above_ = better_from(streaming_margin);
    direct_below_ = better_from(1);
}

std::string streaming_bounds::describe() const {
    if (!known()) return {};
    if (!reachable()) return "too small to be streamed";
    std::array<char, 96> text{};
    std::snprintf(text.data(), text.size(), "streamed when a line takes more than %.0f ns, direct below %.0f ns",
                  1e9 * seconds(streamed_above_), 1e9 * seconds(direct_below_));
    return text.data();
}

streaming_watch::streaming_watch(const costs& c, std::size_t bytes, bool streamed)
    : bounds_(c, bytes), streamed_(streamed) {
    constexpr double pause_seconds = 10e-3;
    pause_ = static_cast<std::uint64_t>(pause_seconds / seconds_per_tick());
}

} // namespace halocline::comm
