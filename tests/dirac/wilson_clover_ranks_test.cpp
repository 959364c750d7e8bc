// SPDX-License-Identifier: Apache-2.0
// The fast operator on lattices that are cut over ranks.
#include "wilson_clover_problem.hpp"

#include <array>

using namespace halocline_test;

namespace {

class WilsonCloverOnRanks : public testing::TestWithParam<coordinate> {};
INSTANTIATE_TEST_SUITE_P(Threads, WilsonCloverOnRanks,
                         testing::Values(coordinate{1, 1, 1, 2}, coordinate{2, 1, 1, 1}, coordinate{1, 1, 1, 3},
                                         coordinate{1, 2, 1, 2}, coordinate{2, 2, 1, 3}),
                         [](const auto& grid) {
                             std::string name = lattice::to_string(grid.param);
                             std::ranges::replace(name, '.', '_');
                             return name;
                         });

TEST_P(WilsonCloverOnRanks, EqualsTheReferenceAndTheSumOfBlocksAndFaces) {
    const coordinate grid = GetParam();
    // 4 blocks in t: three ranks get 2 + 1 + 1
    const lattice_case c{{8, 4, 4, 12}, {4, 2, 4, 3}};
    comm::run_threads(
        static_cast<int>(lattice::volume(grid)),
        [&](const comm::job& j) {
            for (int w : {4, 16}) {
                problem<double> p(j, c, grid, w);
                expect_apply_equals_reference(p);
                expect_faces_sum_up(p);
                expect_overlap_keeps_bits(p);
                problem<float> q(j, c, grid, w);
                expect_apply_equals_reference(q);
                expect_faces_sum_up(q);
                expect_overlap_keeps_bits(q);
                EXPECT_GT(q.fast.statistics().exchanges, 0U);
            }
        },
        small_job());
}

TEST_P(WilsonCloverOnRanks, EveryBoundaryEqualsTheReference) {
    using lattice::boundary;
    const coordinate grid = GetParam();
    for (const boundary b : {boundary::periodic, boundary::antiperiodic, boundary::open})
        comm::run_threads(
            static_cast<int>(lattice::volume(grid)),
            [&](const comm::job& j) {
                dirac::wilson_parameters parameters{.m0 = 0.1, .csw = 0.7};
                parameters.boundaries = {b, boundary::open, boundary::periodic, b};
                problem<double> p(j, {{4, 4, 2, 12}, {2, 2, 2, 4}}, grid, 4, parameters);
                expect_apply_equals_reference(p);
                problem<float> q(j, {{4, 4, 2, 12}, {2, 2, 2, 4}}, grid, 4, parameters);
                expect_apply_equals_reference(q);
            },
            small_job());
}

TEST(WilsonCloverOnRanks, BlockSolveDoesNotDependOnTheCut) {
    const lattice_case c{{8, 8, 4, 4}, {4, 4, 4, 2}};
    std::array<double, 2> sums{};
    for (int ranks = 1; ranks <= 2; ++ranks)
        comm::run_threads(
            ranks,
            [&](const comm::job& j) {
                problem<double> p(j, c, {1, ranks, 1, 1}, 8);
                field<double> x = p.zero(), r = p.random(2), update = p.zero();
                p.blocks.solve(x, r, update, block_colour::red, 4);
                double sum = 0; // depends on the position of every value
                for (std::int64_t site = 0; site < x.volume(); ++site) {
                    coordinate g = lattice::lexicographic_coordinate(site, p.order->extents());
                    for (int mu = 0; mu < lattice::dimensions; ++mu) g[mu] += p.cut.local_box(j.rank()).origin[mu];
                    for (int k = 0; k < lattice::spinor_components; ++k)
                        sum += x.at(site, k) *
                               std::cos(static_cast<double>(lattice::lexicographic_index(g, c.global)) + 0.1 * k);
                }
                for (const std::string& part : j.gather(std::to_string(sum * 1e6)))
                    if (j.rank() == 0) sums[ranks - 1] += std::stod(part) / 1e6;
            },
            small_job());
    EXPECT_NE(sums[0], 0);
    EXPECT_NEAR(sums[0], sums[1], 1e-9);
}

} // namespace
