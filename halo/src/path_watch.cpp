// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/path_watch.hpp>

#include <array>
#include <cstdio>

namespace halocline::halo {

// With lines x times as far away as they were when costs were measured, a message takes
//   cached    x C                  every part of it is a line that goes back and forth
//   streamed  S + (x - 1) flag     only the flag is
// so streaming is better by a factor m from x = m (S - flag) / (C - m flag) on.
path_watch::path_watch(const comm::costs& c, std::size_t bytes, bool streamed) : path_watch(claims_only(c)) {
    streamed_ = streamed;
    if (c.take_seconds == 0 || c.cached.seconds(bytes) == 0) return;
    const double cached = c.cached.seconds(bytes), past = c.streamed.seconds(bytes);
    const double flag = std::min({c.flag_seconds, c.cached.message_seconds, c.streamed.message_seconds});
    const auto better_from = [&](double margin) {
        const double gain = cached - margin * flag;
        const double x = gain > 0 ? margin * (past - flag) / gain : std::numeric_limits<double>::infinity();
        const double ticks = x * c.take_seconds / comm::seconds_per_tick();
        return ticks < 1e12 ? std::max<std::uint64_t>(1, static_cast<std::uint64_t>(ticks)) : never;
    };
    streamed_above_ = better_from(comm::streaming_margin);
    direct_below_ = better_from(1);
}

path_watch path_watch::claims_only(const comm::costs& c) {
    constexpr double clearly_more = 1.6;
    path_watch watch;
    watch.claimed_above_ = static_cast<std::uint64_t>(clearly_more * c.keep_seconds / comm::seconds_per_tick());
    return watch;
}

std::string path_watch::describe() const {
    if (direct_below_ == 0) return {};
    if (streamed_above_ == never) return "too small to be streamed";
    std::array<char, 96> text{};
    std::snprintf(text.data(), text.size(), "streamed when a line takes more than %.0f ns, direct below %.0f ns",
                  1e9 * comm::seconds(streamed_above_), 1e9 * comm::seconds(direct_below_));
    return text.data();
}

} // namespace halocline::halo
