// SPDX-License-Identifier: Apache-2.0
// What the programs of an MPI share that bench_<question> --peer drives: each line of their standard input is an order,
// and between orders every rank sleeps. Compiled once per MPI.
#pragma once

#include "support/machine.hpp"

#include <mpi.h>

#include <array>
#include <cerrno> // program_invocation_short_name
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <unistd.h>
#include <vector>

namespace halocline::bench {

/// Says why, and ends all ranks with exit code 2.
[[noreturn]] inline void give_up(const std::string& why) {
    std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, why.c_str());
    MPI_Abort(MPI_COMM_WORLD, 2);
    std::abort();
}

/// main() of such a program: serve(rank, ranks), each rank bound as bench_<question> binds its own. What serve throws
/// ends all ranks.
template <class Serve>
int run_peer(int argc, char** argv, Serve&& serve) {
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    pin(rank, ranks);
    try {
        serve(rank, ranks);
    } catch (const std::exception& e) {
        give_up(e.what());
    }
    MPI_Finalize();
    return EXIT_SUCCESS;
}

/// The next order on every rank, "" at the end; waits without load. check(order) gives up if it is none: on rank 0 alone,
/// so that it is told once.
template <class Check>
std::string next_order(int rank, Check&& check) {
    std::array<char, 128> line{};
    if (rank == 0 && std::fgets(line.data(), line.size(), stdin) == nullptr) line[0] = '\0';
    if (rank == 0 && line[0] != '\0') static_cast<void>(check(std::string(line.data())));
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
