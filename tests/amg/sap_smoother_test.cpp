// SPDX-License-Identifier: Apache-2.0
#include "norms.hpp"

#include <halocline/amg/sap_smoother.hpp>
#include <halocline/comm/job.hpp>
#include <halocline_test/global_fields.hpp>
#include <halocline_test/refusal.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>

namespace {

using namespace halocline;
using lattice::coordinate;
using fp32_field = lattice::field<float>;

constexpr coordinate block{2, 2, 2, 2};
constexpr int until_blocks_are_solved = 60; // steps

/// An operator on one rank of a job, a source and room for a solution.
struct problem {
    problem(const comm::job& j, const coordinate& global, const coordinate& rank_grid)
        : cut(lattice::decomposition::even(global, rank_grid, block)), local(cut.local_box(j.rank())),
          links(j, cut, halocline_test::links_near_one(local, global, 0.25)),
          d(j, cut, links, {.m0 = 0.2}, lattice::site_order::blocked(local, global, block, 4)), blocks(d, links),
          x(make()), b(make()) {
        halocline_test::fill_random(b, local, global, 1);
    }
    [[nodiscard]] fp32_field make() const { return {d.order(), lattice::spinor_components}; }
    /// ||b - D x|| on the sites of blocks of each colour.
    [[nodiscard]] std::array<double, 2> residuals() {
        fp32_field dx = make();
        EXPECT_EQ(d.apply(dx, x), comm::status::ok);
        std::array<double, 2> squares{};
        halocline_test::for_each_site(local, [&](std::int64_t site, const coordinate& at) {
            coordinate in_blocks{};
            for (int mu = 0; mu < lattice::dimensions; ++mu) in_blocks[mu] = at[mu] / block[mu];
            for (int c = 0; c < lattice::spinor_components; ++c)
                squares[lattice::parity(in_blocks)] +=
                    std::pow(static_cast<double>(b.at(site, c)) - static_cast<double>(dx.at(site, c)), 2);
        });
        return {std::sqrt(squares[0]), std::sqrt(squares[1])};
    }

    lattice::decomposition cut;
    lattice::box local;
    dirac::padded_links links;
    dirac::wilson_clover<float> d;
    dirac::schwarz_blocks<float> blocks;
    fp32_field x, b;
};

class SapSmoother : public testing::TestWithParam<coordinate> { // the rank grid
  protected:
    void run(const coordinate& global, const std::function<void(problem&)>& body) const {
        comm::run_threads(static_cast<int>(lattice::volume(GetParam())), [&](const comm::job& j) {
            problem p(j, global, GetParam());
            body(p);
        });
    }
};

TEST_P(SapSmoother, LeavesNoResidualOnTheColourThatItSolvedLast) {
    run({4, 4, 4, 8}, [](problem& p) {
        amg::sap_smoother smooth(p.blocks, until_blocks_are_solved);
        ASSERT_TRUE(smooth.two_colours());

        ASSERT_EQ(smooth.from_zero(p.x, p.b, 1), comm::status::ok);

        const std::array<double, 2> left = p.residuals();
        EXPECT_LT(left[1], 1e-5 * halocline_test::norm(p.b));
        EXPECT_GT(left[0], 1e-2 * halocline_test::norm(p.b));
        EXPECT_LT(left[0], 0.5 * halocline_test::norm(p.b));
    });
}

TEST_P(SapSmoother, SweepsFromItsOwnResultGoOnWhereItStopped) {
    for (const coordinate& global : {coordinate{4, 4, 4, 8}, coordinate{6, 4, 4, 8}}) // two colours; additive
        run(global, [](problem& p) {
            amg::sap_smoother smooth(p.blocks, 4);
            fp32_field at_once = p.make(), one_sweep = p.make();

            ASSERT_EQ(smooth.from_zero(at_once, p.b, 3), comm::status::ok);
            ASSERT_EQ(smooth.from_zero(one_sweep, p.b, 1), comm::status::ok);
            p.x.copy_from(one_sweep);
            ASSERT_EQ(smooth.improve(p.x, p.b, 2), comm::status::ok);

            EXPECT_LT(halocline_test::distance(p.x, at_once), 1e-5);
            EXPECT_GT(halocline_test::distance(one_sweep, at_once), 1e-2);
        });
}

TEST_P(SapSmoother, SolvesAllBlocksAtOnceWhereThereAreNoTwoColours) {
    run({6, 4, 4, 8}, [](problem& p) {
        amg::sap_smoother smooth(p.blocks, until_blocks_are_solved);
        ASSERT_FALSE(smooth.two_colours());
        fp32_field inside_blocks = p.make();

        ASSERT_EQ(smooth.from_zero(p.x, p.b, 1), comm::status::ok);

        p.d.apply_block(inside_blocks, p.x); // D_block x = b
        EXPECT_LT(halocline_test::distance(inside_blocks, p.b), 1e-5);
    });
}

INSTANTIATE_TEST_SUITE_P(RankGrids, SapSmoother, testing::Values(coordinate{1, 1, 1, 1}, coordinate{1, 1, 1, 2}));

TEST(SapSmootherOfOneRank, RefusesFieldsOfAnotherShape) {
    const comm::job j = comm::job::single();
    problem p(j, {4, 4, 4, 4}, {1, 1, 1, 1});
    amg::sap_smoother smooth(p.blocks, 1);
    fp32_field plain(p.local.extents, lattice::spinor_components);
    const std::string wrong =
        " has 24 components on a box of 4.4.4.4; must have 24 components on a box of 4.4.4.4 in 4 "
        "lanes";

    EXPECT_EQ(halocline_test::refusal([&] { (void)smooth.from_zero(plain, p.b, 1); }), "sap_smoother: x" + wrong);
    EXPECT_EQ(halocline_test::refusal([&] { (void)smooth.from_zero(p.x, plain, 1); }), "sap_smoother: b" + wrong);
    EXPECT_EQ(halocline_test::refusal([&] { (void)smooth.improve(plain, p.b, 1); }), "sap_smoother: x" + wrong);
    EXPECT_EQ(halocline_test::refusal([&] { (void)smooth.improve(p.x, plain, 1); }), "sap_smoother: b" + wrong);
    EXPECT_EQ(smooth.from_zero(p.x, p.b, 1), comm::status::ok);
}

/// Ghosts of a field that is written count as stale.
TEST(SapSmootherOfOneRank, MarksWhatItWrites) {
    const comm::job j = comm::job::single();
    problem p(j, {4, 4, 4, 4}, {1, 1, 1, 1});
    amg::sap_smoother smooth(p.blocks, 1);
    const std::uint64_t before = p.x.version();

    ASSERT_EQ(smooth.from_zero(p.x, p.b, 1), comm::status::ok);
    const std::uint64_t between = p.x.version();
    ASSERT_EQ(smooth.improve(p.x, p.b, 1), comm::status::ok);

    EXPECT_NE(between, before);
    EXPECT_NE(p.x.version(), between);
}

} // namespace
