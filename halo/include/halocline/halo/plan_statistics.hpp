// SPDX-License-Identifier: Apache-2.0
// Where a plan's time and bytes went.
#pragma once

#include <halocline/comm/transport_counts.hpp>

#include <cstdint>
#include <vector>

namespace halocline::halo {

/// Time and bytes since the plan was made or its statistics were reset. Seconds are this rank's (with a team: its
/// member 0's).
struct plan_statistics {
    std::uint64_t exchanges = 0;
    double pack_seconds = 0; ///< in start(): packing (over shm: also moving); extrapolated from every 7th exchange
    /// In finish() and plan::test(). The first microsecond of each is extrapolated from every 7th exchange.
    double wait_seconds = 0;
    double unpack_seconds = 0; ///< 0 for ghosts in a plan's slots, and for what peers wrote in place without a phase
    /// The part of waits (of more than a microsecond) before the last peer on this host had called start().
    /// Extrapolated from every 7th exchange.
    double imbalance_seconds = 0;
    std::uint64_t path_changes = 0; ///< messages that started or stopped being streamed or packed
    /// Pieces of arriving messages that this rank copied itself while it waited (path joint).
    std::uint64_t pieces_helped = 0;
    std::uint64_t waits_yielded = 0; ///< waits that yielded their core: more ranks than cores, or a late peer
    std::vector<comm::transport_counts> by_transport;

    /// Adds up plans; lane counts are added by transport.
    plan_statistics& operator+=(const plan_statistics& other);
};

} // namespace halocline::halo
