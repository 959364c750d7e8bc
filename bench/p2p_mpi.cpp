// SPDX-License-Identifier: Apache-2.0
// The patterns of bench/p2p between two ranks of an MPI.  echo "latency 8 0.5" | mpirun -n 2 bench_p2p_openmpi
//
// Compiled once per MPI; driven by bench_p2p --peer. Each line of standard input is an order: pattern, bytes, seconds.
// The answer is one line: microseconds per message of each batch, bare; step. Between orders every rank sleeps.
#include "p2p/patterns.hpp"
#include "p2p/two_sided_endpoint.hpp"
#include "support/mpi_peer.hpp"

#include <iostream>
#include <memory_resource>
#include <optional>
#include <string>

namespace {

using namespace halocline::bench;

p2p::order order_of(const std::string& line) {
    const std::optional<p2p::order> o = p2p::order::parse(line);
    if (!o) give_up("'" + line + "' is no order 'pattern bytes seconds' with a multiple of 8 bytes");
    return *o;
}

void serve(orders& from) {
    if (from.ranks() != 2) {
        if (from.rank() == 0) give_up(std::to_string(from.ranks()) + " ranks; it needs 2");
        MPI_Barrier(MPI_COMM_WORLD); // passed when rank 0 has finished
    }
    p2p::two_sided::communicator world;
    p2p::two_sided_endpoint endpoint(world, *std::pmr::new_delete_resource(), slowest);
    for (std::string line; !(line = from.next(order_of)).empty();) {
        const p2p::batches us = p2p::measurement(endpoint, order_of(line)).run();
        if (from.rank() != 0) continue;
        for (const double batch : us[0]) std::cout << batch << ' ';
        std::cout << ';';
        for (const double batch : us[1]) std::cout << ' ' << batch;
        std::cout << std::endl;
    }
}

} // namespace

int main(int argc, char** argv) { return run_peer(argc, argv, serve); }
