// SPDX-License-Identifier: Apache-2.0
// MPI_Allreduce, for bench_sum --peer.  echo "8 0.5" | mpirun -n 2 bench_sum_openmpi
// Each line of standard input is an order: doubles, seconds. The answer is one line: microseconds per sum, a batch each.
#include "sum_steps.hpp"
#include "support/machine.hpp"
#include "support/mpi_peer.hpp"

#include <cstdio>
#include <sstream>
#include <string>

namespace {

using namespace halocline::bench;

[[noreturn]] void give_up(const std::string& why) {
    std::fprintf(stderr, "bench_sum_mpi: %s\n", why.c_str());
    MPI_Abort(MPI_COMM_WORLD, 2);
    std::abort();
}

void serve(int rank, int ranks) {
    const auto sum = [](std::vector<double>& values) {
        MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_SUM,
                      MPI_COMM_WORLD);
    };
    for (std::string line; !(line = next_order(rank)).empty();) {
        std::size_t count = 0;
        double seconds = 0;
        if (!(std::istringstream(line) >> count >> seconds) || count == 0)
            give_up("'" + line + "' is no order 'doubles seconds'");
        const std::vector<double> us = time_sums(rank, ranks, count, seconds, sum, slowest);
        if (rank != 0) continue;
        for (const double batch : us) std::printf("%.4f ", batch);
        std::printf("\n");
        std::fflush(stdout);
    }
}

} // namespace

int main(int argc, char** argv) {
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
}
