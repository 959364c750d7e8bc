// SPDX-License-Identifier: Apache-2.0
// The four forms of one exchange that docs/porting-from-mpi.md shows.
#pragma once

#include "strip.hpp"

#include <halocline/comm/job.hpp>

#include <mpi.h>
#include <utility>

namespace porting {

inline std::pair<int, int> neighbours(MPI_Comm comm) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    return {(rank + ranks - 1) % ranks, (rank + 1) % ranks};
}

void diffuse_isend(MPI_Comm comm, strip& u, int steps);
void diffuse_persistent(MPI_Comm comm, strip& u, int steps);
void diffuse_windows(const halocline::comm::job& job, strip& u, int steps);
void diffuse_three_steps(const halocline::comm::job& job, strip& u, int steps);

} // namespace porting
