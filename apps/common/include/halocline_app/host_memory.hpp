// SPDX-License-Identifier: Apache-2.0
// What the hosts of a job can hold.
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline/lattice/decomposition.hpp>

#include <functional>
#include <string>

namespace halocline::app {

/// Refuses a lattice for which the memory of a host, or of a control group, does not suffice, before its kernel kills a
/// rank for it: the fields of all ranks there, of which each rank's take `bytes_of_rank(rank)`. `remedy` says what to
/// do.  Collective.  Err: input_error.
void check_host_memory(const comm::job& j, const lattice::decomposition& cut,
                       const std::function<double(int rank)>& bytes_of_rank, const std::string& remedy);

} // namespace halocline::app
