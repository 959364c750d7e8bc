// SPDX-License-Identifier: Apache-2.0
// Bad input that a rank finds before it joins its job, in a file or a variable that the others may not see.
#pragma once

#include <string_view>

namespace halocline::comm {

/// The rank that the launcher gave this process, for use before there is a job: so that only one rank prints an error.
/// 0 without a launcher. Variables that a shell has kept from an earlier job don't count: their descriptor is closed.
int launched_rank();

/// Gives rank 0 time to print an error that all ranks found, before this rank ends: some launchers end the whole job at
/// the first rank that fails.
/// Cost: half a second under a launcher with a PMIx server, unless its signal ends this rank before; else nothing.
void wait_for_rank_0_to_report();

/// Called instead of job::from_environment() by a rank that found bad input: every rank, whichever of the two it calls,
/// then ends with the same error. If the rank just left, the others would wait for it (MPICH's launcher ends nobody
/// before MPI_Init).
/// Err: always input_error: `what`, with the rank in front unless all ranks have the same. job_error if the others
/// can't
///      be reached. Under a launcher with a PMIx server, which ends the job itself, `what` of this rank alone.
[[noreturn]] void share_bad_input(std::string_view what);

} // namespace halocline::comm
