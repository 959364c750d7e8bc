// SPDX-License-Identifier: Apache-2.0
// The patterns of bench/p2p between two ranks of an MPI.  echo "latency 8 0.5" | mpirun -n 2 bench_p2p_openmpi
//
// Compiled once per MPI; bench_p2p --peer drives it. Each line of standard input is an order: pattern, bytes, seconds.
// The answer is one line: microseconds per message of each batch, bare; step. Between orders every rank sleeps.
#include "p2p/patterns.hpp"
#include "p2p/two_sided_endpoint.hpp"
#include "support/machine.hpp"
#include "support/mpi_peer.hpp"

#include <iostream>
#include <sstream>
#include <string>

namespace {

using namespace halocline::bench;

bool next_order(p2p::order& o, int rank) {
    const std::string line = halocline::bench::next_order(rank);
    if (line.empty()) return false;
    std::istringstream words(line);
    if (words >> o.pattern >> o.bytes >> o.seconds && o.bytes >= 8) return true;
    if (rank == 0) std::cerr << "bench_p2p_mpi: '" << line << "' is no order 'pattern bytes seconds'\n";
    MPI_Abort(MPI_COMM_WORLD, 2);
    return false;
}

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int ranks = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    p2p::two_sided::communicator world;
    const int rank = world.rank();
    if (ranks != 2) {
        if (rank == 0) std::cerr << "bench_p2p_mpi: " << ranks << " ranks; it needs 2\n";
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    pin(rank, ranks);
    p2p::two_sided_endpoint endpoint(world, slowest);
    for (p2p::order o; next_order(o, rank);) {
        const p2p::batches us = p2p::measurement(endpoint, o).run();
        if (rank != 0) continue;
        for (const double batch : us[0]) std::cout << batch << ' ';
        std::cout << ';';
        for (const double batch : us[1]) std::cout << ' ' << batch;
        std::cout << std::endl;
    }
    MPI_Finalize();
}
