// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/detail/path_watch.hpp>

#include <algorithm>

namespace halocline::halo {

path_watch::path_watch(const comm::costs& c, const comm::written_lines& lines, bool streamed)
    : path_watch(claims_only(c)) {
    streamed_ = streamed;
    bounds_ = comm::streaming_bounds(c, lines);
}

path_watch path_watch::claims_only(const comm::costs& c) {
    // A line in the third-level cache takes up to twice as long as one in this core's, but is not in the peer's.
    constexpr double clearly_more = 2.2, part_of_the_way = 0.6;
    double seconds = clearly_more * c.keep_seconds;
    if (c.take_seconds > c.keep_seconds) // both are readings of a clock that may tick only every 10 ns
        seconds = std::min(seconds, c.keep_seconds + part_of_the_way * (c.take_seconds - c.keep_seconds));
    path_watch watch = always_claimed();
    watch.claimed_above_ = static_cast<std::uint64_t>(seconds / comm::seconds_per_tick());
    return watch;
}

path_watch path_watch::always_claimed() noexcept {
    path_watch watch;
    watch.claims_ = true;
    return watch;
}

path_watch path_watch::always_streamed() noexcept {
    path_watch watch;
    watch.streamed_ = true;
    return watch;
}

} // namespace halocline::halo
