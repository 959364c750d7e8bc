// SPDX-License-Identifier: Apache-2.0
// The memory that a solve takes, from geometry and settings alone: for --dry-run, and to refuse what a host can't hold.
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline_app/settings.hpp>

namespace halocline::app {

/// The fields of a rank at the peak, in the set-up or while right-hand sides are iterated together: as many as if SIMD
/// vectors were as wide on its host as here. The program itself and its messages, some 20 MB, come on top.
double bytes_of_rank(const settings& s, const lattice::decomposition& cut, const lattice::coordinate& blocks, int rank);

/// Refuses a lattice for which the memory of a host does not suffice, before its kernel kills a rank for it: the fields
/// of all ranks there. Collective.  Err: input_error.
void check_memory(const comm::job& j, const settings& s, const lattice::decomposition& cut,
                  const lattice::coordinate& blocks);

} // namespace halocline::app
