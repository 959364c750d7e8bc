// SPDX-License-Identifier: Apache-2.0
// What does making a plan cost? For benches that report it.
#pragma once

#include "support/rounds.hpp"

#include <halocline/base/stopwatch.hpp>

#include <vector>

namespace halocline::bench {

/// Milliseconds that each of `plans` calls of make() takes on the slowest rank; look(plan) is called with what was made.
/// Collective.
template <class Make, class Look>
std::vector<double> making_times(const comm::job& j, int plans, Make&& make, Look&& look) {
    std::vector<double> ms;
    for (int i = 0; i < plans; ++i) {
        j.barrier();
        const stopwatch watch;
        const auto plan = make();
        ms.push_back(slowest(j, {1e3 * watch.seconds()})[0]);
        look(plan);
    }
    return ms;
}

} // namespace halocline::bench
