// SPDX-License-Identifier: Apache-2.0
// Bad input that a rank finds before it joins its job, in a file or a variable that other ranks may not see.
#pragma once

#include <halocline/base/error.hpp>

#include <cstddef>
#include <string_view>

namespace halocline::comm {

/// Bad input of a rank that could not reach the others: none of them can report it.
class unshared_input_error : public input_error {
    using input_error::input_error;
};

/// The rank that the launcher gave this process, for use before there is a job: it lets a single rank print an error.
/// 0 without a launcher. Variables left over from an earlier job in the same shell don't count: their descriptor is
/// closed.
int launched_rank();

/// Gives rank 0 time to print an error that all ranks found before this rank ends: some launchers end the whole job as
/// soon as one rank fails.
/// Cost: up to half a second under a launcher with a PMIx server (less if its signal ends this rank); otherwise
/// nothing.
void wait_for_rank_0_to_report();

/// Called instead of job::from_environment() by a rank that found bad input, so that every rank, whichever of the two
/// it calls, ends with the same error. If this rank simply exited, the others could wait for it: MPICH's launcher ends
/// nobody before MPI_Init.
/// Err: always input_error: `what`, prefixed with the rank unless all ranks have the same text. unshared_input_error
///      with `what` if the others can't be reached: what the launcher left to this rank is damaged, a rank has died, or,
///      under a launcher with a PMIx server, not all have come within a second (it ends the job itself).
[[noreturn]] void share_bad_input(std::string_view what);
/// The same instead of job::from_mpi_handle().  Err: input_error; unshared_input_error if a rank has died.
[[noreturn]] void share_bad_input(std::string_view what, const void* communicator, std::size_t bytes);

} // namespace halocline::comm
