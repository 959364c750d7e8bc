// SPDX-License-Identifier: Apache-2.0
// Bad input that a rank finds before it joins its job, in a file or a variable that the others may not see.
#pragma once

#include <string_view>

namespace halocline::comm {

/// Rank that the launcher gave this process, before there is a job to ask, so that one rank alone can speak; 0 if none
/// did. Variables that a shell kept from a job that is over are none: the descriptor they came with is closed.
int launched_rank();

/// For a rank that leaves it to rank 0 to say what is wrong, before it ends: where a launcher ends the job at the first
/// rank that fails, rank 0 may not have said it yet.  Cost: half a second under a launcher with a PMIx server, if no
/// signal ends it before; else nothing.
void leave_the_word_to_rank_0();

/// Instead of job::from_environment(): lets the other ranks, who call either, end with the same error. A rank that just
/// left would be waited for (MPICH's launcher ends nobody before MPI_Init), and rank 0 could not speak for it.
/// Err: always input_error: `what`, with the rank in front unless all ranks say the same. job_error if the others can't be
///      met. Under a launcher with a PMIx server, which ends the job itself, `what` of this rank alone.
[[noreturn]] void share_bad_input(std::string_view what);

} // namespace halocline::comm
