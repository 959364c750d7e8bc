// SPDX-License-Identifier: Apache-2.0
// What the programs of an MPI share that bench_<question> --peer drives: each line of their standard input is an order,
// and between orders every rank sleeps. Compiled once per MPI.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdio>
#include <string>
#include <unistd.h>
#include <vector>

namespace halocline::bench {

/// The next order on every rank, "" at the end; waits without load.
inline std::string next_order(int rank) {
    std::array<char, 128> line{};
    if (rank == 0 && std::fgets(line.data(), line.size(), stdin) == nullptr) line[0] = '\0';
    MPI_Request request;
    MPI_Ibcast(line.data(), static_cast<int>(line.size()), MPI_CHAR, 0, MPI_COMM_WORLD, &request);
    for (int done = 0; !done;) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (!done) usleep(1000);
    }
    return line.data();
}

/// Numbers of all ranks, element-wise maximum.
inline std::vector<double> slowest(std::vector<double> mine) {
    MPI_Allreduce(MPI_IN_PLACE, mine.data(), static_cast<int>(mine.size()), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return mine;
}

} // namespace halocline::bench
