// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/plan_statistics.hpp>

#include <algorithm>

namespace halocline::halo {

plan_statistics& plan_statistics::operator+=(const plan_statistics& other) {
    exchanges += other.exchanges;
    pack_seconds += other.pack_seconds;
    wait_seconds += other.wait_seconds;
    unpack_seconds += other.unpack_seconds;
    imbalance_seconds += other.imbalance_seconds;
    path_changes += other.path_changes;
    waits_yielded += other.waits_yielded;
    for (const comm::lane_counts& lane : other.lanes) {
        const auto same = std::ranges::find(lanes, lane.transport, &comm::lane_counts::transport);
        if (same == lanes.end()) {
            lanes.push_back(lane);
            continue;
        }
        same->messages += lane.messages;
        same->bytes += lane.bytes;
        same->writes += lane.writes;
        same->receives += lane.receives;
        same->completions += lane.completions;
    }
    return *this;
}

} // namespace halocline::halo
