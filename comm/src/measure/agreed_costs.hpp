// SPDX-License-Identifier: Apache-2.0
// Combines all ranks' measurements into the values every rank uses, so that other load on the machine changes no
// choice.
#pragma once

#include <halocline/comm/costs.hpp>

#include <vector>

namespace halocline::comm {

/// The measurements of one rank; 0 where it could not measure.
struct measurement {
    costs seen;                 ///< `cached`: without claims; claimed_ratio is left out
    write_cost claimed{};       ///< the same with lines claimed first
    bool own_core = false;      ///< has it a processor to itself?
    bool shares_memory = false; ///< with the neighbour to which it sent flags
};

/// For each time the lower quartile of the ranks that measured it, since other load only adds time, capped at what the
/// hardware can take, since a rank may have been disturbed by other programs every time.
costs agreed(const std::vector<measurement>& all);

} // namespace halocline::comm
