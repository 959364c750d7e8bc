// SPDX-License-Identifier: Apache-2.0
// What the parts of an exchange cost on this job's machine: measured once per job, the same numbers on every rank, so that
// all come to the same choice of path. Estimates on a possibly busy machine: good for choosing, not for reporting.
#pragma once

#include <halocline/comm/job.hpp>

namespace halocline::comm {

struct costs {
    double flag_seconds = 0;          ///< from a rank's send of next to nothing to the peer that waits for it
    double message_seconds = 0;       ///< each further message of the same exchange
    double copy_seconds_per_byte = 0; ///< of contiguous bytes
    double run_seconds = 0;           ///< each run of contiguous bytes, beyond its bytes
};

/// Collective at the first call of a job, local afterwards.  Err: job_error.
/// Cost: about a millisecond once; two small channel sets between pairs of neighbouring ranks.
const costs& measured_costs(const job& j);

} // namespace halocline::comm
