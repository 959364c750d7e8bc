// SPDX-License-Identifier: Apache-2.0
// From what each rank has measured, what all go by: a machine that was busy meanwhile must not change what they choose.
#pragma once

#include <halocline/comm/costs.hpp>

#include <vector>

namespace halocline::comm {

/// What one rank has measured; 0 is what it could not.
struct measurement {
    costs seen;
    bool own_core = false;      ///< has it a processor to itself?
    bool shares_memory = false; ///< with the neighbour to which it sent flags
};

/// Of each time the lower quartile of those who know it, for what else runs only adds; and no more than the hardware
/// can take, for a rank may have waited for other programs whenever it looked.
costs agreed(const std::vector<measurement>& all);

} // namespace halocline::comm
