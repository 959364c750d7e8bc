// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <halocline/comm/job.hpp>

namespace halocline::comm {

/// Last step of start-up: calls measured_costs() if any two ranks share memory. Windows need the result but are made by
/// two ranks alone and cannot run a collective.  Collective.
void measure_at_start(const job& j);

} // namespace halocline::comm
