// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/detail/path_watch.hpp>

#include <algorithm>

namespace halocline::halo {

path_watch::path_watch(const comm::costs& c, const comm::written_lines& lines, bool streamed)
    : streamed_(streamed), claims_(c.claims_pay()), claimed_above_(claims_ ? least_claimed_ticks(c) : never),
      bounds_(c, lines) {
    if (!claims_ && !(bounds_.known() && may_stream())) claimed_above_ = 0; // nothing would change
}

path_watch path_watch::claims_only(const comm::costs& c) {
    path_watch watch = always_cached(c);
    if (watch.claims_) watch.claimed_above_ = least_claimed_ticks(c);
    return watch;
}

path_watch path_watch::of_distance(const comm::costs& c) {
    path_watch watch;
    watch.streamed_ = c.were_far();
    watch.claimed_above_ = never;
    watch.bounds_ = comm::streaming_bounds::of_distance(c);
    return watch;
}

std::uint64_t path_watch::least_claimed_ticks(const comm::costs& c) {
    // A line in the third-level cache takes up to twice as long as one in this core's, but is not in the peer's.
    constexpr double clearly_more = 2.2, part_of_the_way = 0.6;
    double seconds = clearly_more * c.keep_seconds;
    if (c.take_seconds > c.keep_seconds) // both are readings of a clock that may tick only every 10 ns
        seconds = std::min(seconds, c.keep_seconds + part_of_the_way * (c.take_seconds - c.keep_seconds));
    return static_cast<std::uint64_t>(seconds / comm::seconds_per_tick());
}

path_watch path_watch::always_cached(const comm::costs& c) noexcept {
    path_watch watch;
    watch.claims_ = c.claims_pay();
    return watch;
}

path_watch path_watch::always_streamed() noexcept {
    path_watch watch;
    watch.streamed_ = true;
    return watch;
}

} // namespace halocline::halo
