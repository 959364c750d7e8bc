// SPDX-License-Identifier: Apache-2.0
// An MPI of one rank whose calls fail when a test wants that, as a module (failing_mpi.cpp).
#pragma once

struct failing_mpi {
    int open_worlds = 0, given_up = 0; ///< worlds that are open; those that were closed as given up
    int windows = 0;                   ///< that are there
    int open_code = 0;                 ///< what open() returns, although it has made a world
    int gather_code = 0;               ///< what allgather() returns
    int frees_until_failure = -1;      ///< -1: windows_free() does not fail
};

/// The module's symbol "the_failing_mpi".
using failing_mpi_entry = failing_mpi* (*)();
