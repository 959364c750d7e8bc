// SPDX-License-Identifier: Apache-2.0
// Exchanges of a program's own arrays, as the program has them in MPI and as docs/porting-from-mpi.md replaces them.
#pragma once

#include "padded_array.hpp"
#include "plane.hpp"

#include <halocline/comm/job.hpp>
#include <halocline/lattice/decomposition.hpp>

#include <functional>
#include <mpi.h>
#include <span>

namespace porting {

/// `cart` has the dimensions x, y, z, t.
void diffuse_with_mpi(MPI_Comm cart, padded_array& u, int steps);
void diffuse_with_halocline(MPI_Comm cart, const halocline::lattice::coordinate& global, padded_array& u, int steps);
/// The cut of a program whose communicator has the dimensions t, z, y, x.
halocline::lattice::decomposition cut_of_reversed(MPI_Comm cart, const halocline::lattice::coordinate& global);

/// Fill the ghost columns of a plane that is cut in x; the ranks form a ring.
void exchange_columns_with_mpi(MPI_Comm comm, plane& u, int steps);
void exchange_columns_with_windows(const halocline::comm::job& job, plane& u, int steps);

constexpr int work_tag = 3;
/// Sends values over a window, waits for the peer's message of MPI, and returns what it says.
int send_and_hear(MPI_Comm comm, const halocline::comm::job& job, int peer, std::span<const double> values);
double sum_of(const halocline::comm::job& job, double mine, const std::function<void()>& meanwhile);

} // namespace porting
