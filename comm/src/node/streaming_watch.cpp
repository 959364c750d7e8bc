// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/detail/streaming_watch.hpp>

#include <array>
#include <cmath>
#include <cstdio>

namespace halocline::comm {
namespace {

/// The geometric mean of the times of a line near and far, in units of the time that was measured. For costs measured
/// near the least time far counts, for costs measured far the usual one, since far lines vary most.
double half_way(const costs& c) { return std::sqrt(c.were_far() ? 1 / far_by_near : least_far_by_near); }

/// How long a line takes if it takes x times as long as it did when costs were measured.
double ticks_of(const costs& c, double x) { return x * c.take_seconds / seconds_per_tick(); }

std::uint64_t whole_ticks(double ticks) { return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(ticks)); }

} // namespace

// With lines x times as far away as they were when costs were measured, a message takes
//   cached    x C                        every part of it is a line that goes back and forth
//   streamed  S + x P + (x - 1) flag     only the flag is, and the lines P that it fills partly
// so streaming is better by a factor m from x = m (S - flag) / (C - m (P + flag)) on.
//
// A pair of cores is in one of two places: near, sharing a cache, or far, where a line takes more than twice, up to four times as
// long. Near, messages of 16 KiB and more perform about equally either way (0.7 to 1.25, depending on the exchange). So
// the x above lies there, and on which side of it a reading falls is chance. Hence no bound is nearer to the near place
// than the geometric mean of both.
//
// Moves that don't wait for the lines that they replace take less than x times as long: 1.7 times on Zen 5, where x is
// 3.5. Past the cache they gain nothing there (costs::best_moved()).
streaming_bounds::streaming_bounds(const costs& c, const written_lines& lines) {
    if (c.take_seconds == 0 || c.cached_seconds(lines) == 0 || lines.whole == 0) return;
    if (c.best_moved(lines)) return;
    const double cached = c.cached_seconds(lines), part = c.part_seconds(lines);
    const double past = c.streamed_seconds(lines) - part;
    const double flag = std::min({c.flag_seconds, c.cached.message_seconds, c.streamed.message_seconds});
    const auto better_from = [&](double margin) {
        const double gain = cached - margin * (part + flag);
        const double x = gain > 0 ? margin * (past - flag) / gain : std::numeric_limits<double>::infinity();
        const double ticks = ticks_of(c, std::max(x, margin * half_way(c)));
        return ticks < 1e12 ? whole_ticks(ticks) : never;
    };
    streamed_above_ = better_from(streaming_margin);
    direct_below_ = better_from(1);
}

streaming_bounds streaming_bounds::of_distance(const costs& c) {
    streaming_bounds b;
    if (c.take_seconds == 0) return b;
    b.streamed_above_ = whole_ticks(ticks_of(c, streaming_margin * half_way(c)));
    b.direct_below_ = whole_ticks(ticks_of(c, half_way(c)));
    return b;
}

std::string streaming_bounds::describe_times() const {
    if (!known()) return {};
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "when a line takes more than %.0f ns, no longer below %.0f ns",
                  1e9 * seconds(streamed_above_), 1e9 * seconds(direct_below_));
    return text.data();
}

std::string streaming_bounds::describe() const {
    if (!known()) return {};
    return reachable() ? "streamed " + describe_times() : "too small to be streamed";
}

streaming_watch::streaming_watch(const streaming_bounds& bounds, bool streamed) : bounds_(bounds), streamed_(streamed) {
    constexpr double pause_seconds = 10e-3;
    pause_ = static_cast<std::uint64_t>(pause_seconds / seconds_per_tick());
    if (!streamed_ && !bounds_.reachable()) next_ = std::numeric_limits<std::uint64_t>::max(); // nothing to watch for
}

streaming_watch::streaming_watch(const costs& c, std::size_t bytes, bool streamed)
    : streaming_watch(streaming_bounds(c, bytes), streamed) {}

streaming_watch streaming_watch::of_distance(const costs& c) {
    const streaming_bounds bounds = streaming_bounds::of_distance(c);
    return {bounds, bounds.known() && c.were_far()};
}

} // namespace halocline::comm
