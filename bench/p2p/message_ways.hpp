// SPDX-License-Identifier: Apache-2.0
// In which ways our messages travelled: the limit without matching is comparable only if they took the same way.
#pragma once

#include <halocline/comm/messenger.hpp>

namespace halocline::bench::p2p {

/// Counts of all slices of one contender on one rank, or of both ranks.
struct message_ways {
    double arrived = 0;
    double pushed = 0; ///< copied by their sender
    double copied = 0; ///< first copied into their sender's slab

    /// Adds what happened between two readings of a messenger's counts.
    void add(const comm::message_counts& before, const comm::message_counts& after) {
        arrived += static_cast<double>(after.arrived - before.arrived);
        pushed += static_cast<double>(after.pushed - before.pushed);
        copied += static_cast<double>(after.copied - before.copied);
    }
    /// Which other way they took; nullptr: that of limits.hpp, except for at most one message in a hundred.
    [[nodiscard]] const char* other_way() const {
        if (pushed > arrived / 100) return "written by the sender";
        return copied > arrived / 100 ? "copied first" : nullptr;
    }
};

} // namespace halocline::bench::p2p
