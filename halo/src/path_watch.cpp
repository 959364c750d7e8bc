// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/path_watch.hpp>

namespace halocline::halo {

path_watch::path_watch(const comm::costs& c, std::size_t bytes, bool streamed) : path_watch(claims_only(c)) {
    streamed_ = streamed;
    bounds_ = comm::streaming_bounds(c, bytes);
}

path_watch path_watch::claims_only(const comm::costs& c) {
    constexpr double clearly_more = 2.2; // than a line at hand: one in the third-level cache takes about twice as long
    path_watch watch;
    watch.claimed_above_ = static_cast<std::uint64_t>(clearly_more * c.keep_seconds / comm::seconds_per_tick());
    return watch;
}

} // namespace halocline::halo
