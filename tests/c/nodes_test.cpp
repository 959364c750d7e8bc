// SPDX-License-Identifier: Apache-2.0
// The C interface on four ranks that are dealt out to two nodes alternately: parts of this host that are declared to be
// nodes (HALOCLINE_NODE).
#include <halocline.h>

#include <halocline/lattice/rank_order.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace halocline;

class CNodes : public testing::Test {
  protected:
    CNodes() {
        const int rank = std::atoi(std::getenv("HALOCLINE_RANK"));
        setenv("HALOCLINE_NODE", std::to_string(rank % 2).c_str(), 1);
        halocline_job_options options{};
        options.transports = "shm,ofi";
        options.ofi_provider = "tcp;ofi_rxm";
        EXPECT_EQ(halocline_job_from_environment(&options, &job_), HALOCLINE_OK) << halocline_error();
        EXPECT_EQ(halocline_job_ranks(job_), 4);
    }
    ~CNodes() override { halocline_job_free(job_); }

    halocline_job* job_ = nullptr;
};

TEST_F(CNodes, APlanPlacesItsRanksByNodesIfAsked) {
    const auto cut = lattice::decomposition::even({2, 2, 2, 8}, {1, 1, 1, 4});
    const std::vector<int> by_nodes = lattice::rank_order_by_nodes(cut, std::array{0, 1, 0, 1}), by_number{0, 1, 2, 3};
    ASSERT_NE(by_nodes, by_number);
    for (const bool asked : {true, false}) {
        halocline_plan_options options{};
        std::ranges::copy(cut.global(), options.global);
        std::ranges::copy(cut.rank_grid(), options.rank_grid);
        options.width_low[3] = options.width_high[3] = 1;
        options.bytes_per_site = sizeof(double);
        options.order_by_nodes = asked ? 1 : 0;
        halocline_plan* plan = nullptr;
        ASSERT_EQ(halocline_plan_create(job_, &options, &plan), HALOCLINE_OK) << halocline_error();
        std::array<int, 4> begin{}, extent{};

        halocline_plan_box(plan, begin.data(), extent.data());

        EXPECT_EQ(extent[3], 2);
        EXPECT_EQ((asked ? by_nodes : by_number)[begin[3] / 2], halocline_job_rank(job_));
        EXPECT_EQ(halocline_job_barrier(job_), HALOCLINE_OK);
        halocline_plan_free(plan);
    }
}

} // namespace
