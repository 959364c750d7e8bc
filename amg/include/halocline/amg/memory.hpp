// SPDX-License-Identifier: Apache-2.0
// The memory that a solver takes, known before it is made: for programs that refuse what a host can't hold, before its
// kernel ends a rank.
#pragma once

#include <halocline/amg/options.hpp>
#include <halocline/lattice/decomposition.hpp>

namespace halocline::amg {

/// Bytes of the fields of one rank, lanes that stay empty included. Messages, plans and the program come on top.
struct memory_estimate {
    double made = 0;   ///< once the solver is made
    double set_up = 0; ///< besides, during setup()
    double solves = 0; ///< besides, once it has solved for as many right-hand sides at once
};

/// That of a solver for this cut, if SIMD vectors are as wide on the rank's host as here. `at_once`: right-hand sides
/// that are iterated together, 1 to options.at_once.
/// Err: input_error: blocks that don't divide the lattice, cuts inside blocks, a lane width that blocks don't allow.
/// Cost: nothing is made.
memory_estimate estimate_memory(const lattice::decomposition& cut, int rank, const solver_options& options,
                                int at_once = 1);

} // namespace halocline::amg
