// SPDX-License-Identifier: Apache-2.0
// Four transports in one job: an MPI launcher starts three pretended nodes on one host, the last of which has no
// libfabric provider. So the rank itself is served by self, the ranks of its node by shm, those of the other node with
// the provider by ofi, and those of the last node by mpi.
#include "mixed_bodies.hpp"

#include <cstdlib>

namespace halocline_test {
namespace {

constexpr int last_node = 2;
int node_of(int rank) { return std::min(rank / 2, last_node); }

} // namespace

std::string expected_transport(int from, int to) {
    if (from == to) return "self";
    if (node_of(from) == node_of(to)) return "shm";
    return node_of(from) == last_node || node_of(to) == last_node ? "mpi" : "ofi";
}

lacking expected_lack() { return {"libfabric has no provider that can do", "mpi"}; }

const job& mixed_job() {
    static const job j = [] {
        int rank = 0;
        for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
            if (const char* text = std::getenv(variable)) rank = std::atoi(text);
        }
        setenv("HALOCLINE_NODE", ("node" + std::to_string(node_of(rank))).c_str(), 1);
        if (node_of(rank) == last_node) setenv("FI_PROVIDER", "none", 1); // no provider has that name
        job_options options;
        options.transports = {"shm", "ofi", "mpi"};
        options.deadline = std::chrono::seconds(30);
        return job::from_environment(options);
    }();
    return j;
}

} // namespace halocline_test
