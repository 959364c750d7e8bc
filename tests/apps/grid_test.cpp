// SPDX-License-Identifier: Apache-2.0
// Where heat4d and generate_gauge place their ranks: four, dealt out to two nodes alternately.
#include <halocline_app/grid.hpp>

#include <halocline/lattice/rank_order.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace {

using namespace halocline;

TEST(Grid, PlacesRanksSoThatFewSitesTravelBetweenNodes) {
    setenv("HALOCLINE_NODE", std::to_string(std::atoi(std::getenv("HALOCLINE_RANK")) % 2).c_str(), 1);
    comm::job_options options;
    options.transports = {"shm", "ofi"};
    options.ofi_provider = "tcp;ofi_rxm";
    const comm::job j = comm::job::from_environment(options);
    ASSERT_EQ(j.ranks(), 4);

    const lattice::decomposition cut = app::decompose({4, 4, 4, 8}, "1.1.1.4", j);

    const std::int64_t sites = lattice::off_node_sites(cut, j.nodes());
    EXPECT_GT(sites, 0); // of one node none would travel
    EXPECT_EQ(2 * sites, lattice::off_node_sites(cut.with_rank_order({}), j.nodes()));
}

} // namespace
