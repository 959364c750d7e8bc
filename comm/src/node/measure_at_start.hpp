// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <halocline/comm/job.hpp>

namespace halocline::comm {

/// Last thing of a job's start: measured_costs(), where all ranks share memory, so that windows know them, which two
/// ranks make without the others.  Collective.
void measure_at_start(const job& j);

} // namespace halocline::comm
