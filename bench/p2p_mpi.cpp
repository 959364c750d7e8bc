// SPDX-License-Identifier: Apache-2.0
// The patterns of bench/p2p between two ranks of an MPI.  echo "latency 8 0.5" | mpirun -n 2 bench_p2p_openmpi
//
// Compiled once per MPI; bench_p2p --peer drives it. Each line of standard input is an order: pattern, bytes, seconds.
// The answer is one line: microseconds per message of each batch, bare; step. Between orders every rank sleeps.
#include "p2p/patterns.hpp"
#include "p2p/two_sided_endpoint.hpp"

#include <array>
#include <iostream>
#include <sched.h>
#include <sstream>
#include <unistd.h>

namespace {

using namespace halocline::bench;

/// The next order on every rank, false at the end; waits without load.
bool next_order(p2p::order& o, int rank) {
    std::array<char, 128> line{};
    if (rank == 0 && std::fgets(line.data(), line.size(), stdin) == nullptr) line[0] = '\0';
    MPI_Request request;
    MPI_Ibcast(line.data(), static_cast<int>(line.size()), MPI_CHAR, 0, MPI_COMM_WORLD, &request);
    for (int done = 0; !done;) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (!done) usleep(1000);
    }
    if (line[0] == '\0') return false;
    std::istringstream words(line.data());
    if (words >> o.pattern >> o.bytes >> o.seconds && o.bytes >= 8) return true;
    if (rank == 0) std::cerr << "bench_p2p_mpi: '" << line.data() << "' is no order 'pattern bytes seconds'\n";
    MPI_Abort(MPI_COMM_WORLD, 2);
    return false;
}

std::vector<double> slowest(std::vector<double> mine) {
    MPI_Allreduce(MPI_IN_PLACE, mine.data(), static_cast<int>(mine.size()), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return mine;
}

/// One core per rank, where there are enough: as the ranks of bench_p2p have them.
void pin(int rank, int ranks) {
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < ranks) return;
    for (int core = 0, n = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, &all) && n++ == rank) CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
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
