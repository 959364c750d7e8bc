// SPDX-License-Identifier: Apache-2.0
// MPI_Allreduce, for bench_sum --peer.  echo "8 0.5" | mpirun -n 2 bench_sum_openmpi
// Each line of standard input is an order: doubles, seconds. The answer is one line: microseconds per sum for each
// batch.
#include "sum_steps.hpp"
#include "support/mpi_peer.hpp"

#include <cstdio>
#include <optional>
#include <string>

namespace {

using namespace halocline::bench;

sum_order order_of(const std::string& line) {
    const std::optional<sum_order> o = sum_order::parse(line);
    if (!o) give_up("'" + line + "' is no order 'doubles seconds'");
    return *o;
}

void serve(orders& from) {
    const auto sum = [](std::vector<double>& values) {
        MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_SUM,
                      MPI_COMM_WORLD);
    };
    for (std::string line; !(line = from.next(order_of)).empty();) {
        const sum_order o = order_of(line);
        const std::vector<double> us = time_sums(from.rank(), from.ranks(), o.values, o.seconds, sum, slowest);
        if (from.rank() != 0) continue;
        for (const double batch : us) std::printf("%.4f ", batch);
        std::printf("\n");
        std::fflush(stdout);
    }
}

} // namespace

int main(int argc, char** argv) { return run_peer(argc, argv, serve); }
