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
    pieces_helped += other.pieces_helped;
    waits_yielded += other.waits_yielded;
    for (const comm::transport_counts& traffic : other.by_transport) {
        const auto same = std::ranges::find(by_transport, traffic.transport, &comm::transport_counts::transport);
        if (same == by_transport.end()) {
            by_transport.push_back(traffic);
            continue;
        }
        same->messages += traffic.messages;
        same->bytes += traffic.bytes;
        same->writes += traffic.writes;
        same->receives += traffic.receives;
        same->completions += traffic.completions;
    }
    return *this;
}

} // namespace halocline::halo
