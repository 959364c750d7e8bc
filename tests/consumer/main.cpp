// SPDX-License-Identifier: Apache-2.0
// The smallest user of the library. README.md shows this program (consumer.readme compares them).
#include <halocline/comm/run_job.hpp>
#include <halocline/halo/plan.hpp>

#include <iostream>

using namespace halocline;

int exchange_ghosts(const comm::job& job) { // on each rank that halocline-run or mpirun started, or just on this one
    // Declare: a global lattice (x, y, z, t), how it is cut over the ranks, and a field on this rank's part of it.
    const auto cut = lattice::decomposition::chosen({16, 16, 16, 32}, job.ranks());
    lattice::field<double> phi(cut.local_box(job.rank()).extents, 1); // one double per site

    // Plan: once, by all ranks together. By default one layer of ghosts behind each face of a dimension that is cut;
    // with self_exchange also of the others.
    halo::plan exchange(job, cut, halo::options_for(phi, {.name = "phi", .self_exchange = true}));

    // Start and finish: in every step.
    for (int step = 0; step < 100; ++step) {
        for (double& value : phi.values()) value = 1000.0 * job.rank() + step;
        exchange.start(phi); // copies the faces straight into the neighbours' memory
        // ... compute the sites that need no ghosts ...
        exchange.finish_or_throw();  // waits until the neighbours' faces are here
        exchange.require_fresh(phi); // with HALOCLINE_CHECK=normal: throws if faces were written since start()
        // ... compute the other sites; here we only look at the ghosts ...
        for (const halo::plan_message& m : exchange.messages())
            for (const double ghost : exchange.ghosts<double>(m.where))
                if (ghost != 1000.0 * m.peer + step) return 1;
    }
    if (job.rank() == 0) std::cout << exchange.describe(); // face, peer, transport, path, bytes, and why
    return 0;
}

int main() { return comm::run_job(exchange_ghosts); } // tells of an exception, and ends all ranks
