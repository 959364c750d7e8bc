// SPDX-License-Identifier: Apache-2.0
// What lines of JSON say about the slices of a contender in one mode of the machine.
#pragma once

#include "support/json_line.hpp"
#include "support/rounds.hpp"
#include "support/statistics.hpp"

#include <string>
#include <vector>

namespace halocline::bench {

inline const char* name_of(outcome::speed mode) { return mode == outcome::fast ? "fast" : "slow"; }

/// "speed", "flag_ns", "transfer_ns", "core_ns", "slices", "noisy".
inline json_line facts_of(const outcome& seen, outcome::speed mode) {
    const series& s = seen.kept[mode];
    json_line line;
    line.add("speed", name_of(mode)).add("flag_ns", median(s.flag_ns)).add("transfer_ns", median(s.transfer_ns));
    line.add("core_ns", median(s.core_ns)).add("slices", s.slices).add("noisy", seen.noisy);
    return line;
}

/// "us_min", "us_median", "us_p95", with `measure` before each; of batches, each the mean of many steps.
inline json_line times_of(const std::vector<double>& us, const std::string& measure = "") {
    json_line line;
    line.add(measure + "us_min", quantile(us, 0)).add(measure + "us_median", median(us));
    line.add(measure + "us_p95", quantile(us, 0.95));
    return line;
}

} // namespace halocline::bench
