// SPDX-License-Identifier: Apache-2.0
// Verbs in one job with a rank that has no such device, on a machine that has one: pairs that both have it use it, the
// others use libfabric.
#include "mixed_bodies.hpp"

#include <cstdlib>

namespace halocline_test {
namespace {

constexpr int without = 1;

} // namespace

std::string expected_transport(int from, int to) {
    if (from == to) return "self";
    return from == without || to == without ? "ofi" : "verbs";
}

lacking expected_lack() { return {"rank 1: no RDMA device with an active port 2", "ofi"}; }

const job& mixed_job() {
    static const job j = [] {
        job_options options;
        options.transports = {"verbs", "ofi"};
        options.ofi_provider = "tcp;ofi_rxm";
        options.deadline = std::chrono::seconds(60);
        const char* rank = std::getenv("HALOCLINE_RANK");
        if (rank != nullptr && std::atoi(rank) == without) options.verbs.port = 2; // on devices that have one
        return job::from_environment(options);
    }();
    return j;
}

} // namespace halocline_test
