// SPDX-License-Identifier: Apache-2.0
// The flags --grid and --mpi of programs without a config file.
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline/lattice/decomposition.hpp>

#include <string>

namespace halocline::app {

/// "8.8.8.16" as extents.  Err: input_error naming the flag and the text.
lattice::coordinate parse_extents(const char* flag, const std::string& text);

/// Err: input_error unless `rank_grid` has the job's number of ranks and cuts `global` on multiples of `granularity`;
/// it begins with `as_given`, "--mpi 2.1.1.1" for instance, and names the rank grids that do.
void check_rank_grid(const std::string& as_given, const lattice::coordinate& rank_grid,
                     const lattice::coordinate& global, const lattice::coordinate& granularity, int ranks);

/// `global` cut over a rank grid given as text; empty: over the one with the smallest surface. Ranks are placed so that
/// few bytes travel between nodes.
/// Err: input_error, as check_rank_grid().
lattice::decomposition decompose(const lattice::coordinate& global, const std::string& rank_grid, const comm::job& j);

} // namespace halocline::app
