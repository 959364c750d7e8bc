// SPDX-License-Identifier: Apache-2.0
// The fast operator compared with the plain reference on one rank: every lane width, SIMD target and kind of block.
#include "refusals.hpp"
#include "wilson_clover_problem.hpp"

#include <halocline/lattice/gauge_file.hpp>
#include <halocline_test/reference_data.hpp>
#include <halocline_test/refusal.hpp>
#include <halocline_test/simd_targets.hpp>

#include <limits>
#include <string>
#include <vector>

using namespace halocline_test;

namespace {

TEST(WilsonClover, EqualsTheReference) {
    for_each_problem([](auto& p) { expect_apply_equals_reference(p); });
}

TEST(WilsonClover, IsTheSumOfBlocksAndFaces) {
    for_each_problem([](auto& p) { expect_faces_sum_up(p); });
}

TEST(WilsonClover, BlockSolveReturnsTheResidualOfItsUpdate) {
    for_each_problem([](auto& p) {
        for (const block_colour colour : every_colour) expect_residual_identity(p, colour);
    });
}

/// Ghosts of a field that is written count as stale.
TEST(WilsonClover, MarksWhatItWrites) {
    const comm::job j = comm::job::single(small_job());
    problem<float> p(j, cases[0], {1, 1, 1, 1}, 4);
    field<float> x = p.random(1), r = p.random(2), y = p.zero(), update = p.zero();
    const auto marks = [](field<float>& f, auto&& write) {
        const std::uint64_t before = f.version();
        write();
        return f.version() != before;
    };

    EXPECT_TRUE(marks(y, [&] { (void)p.fast.apply(y, x); }));
    EXPECT_TRUE(marks(y, [&] { p.fast.apply_block(y, x); }));
    auto hops = p.fast.start_surface(x);
    ASSERT_EQ(hops.finish(), comm::status::ok);
    EXPECT_TRUE(marks(y, [&] { hops.add_to(y); }));
    auto more_hops = p.fast.start_surface(x);
    EXPECT_TRUE(marks(y, [&] { (void)more_hops.finish_and_add_to(y); }));
    for (field<float>* f : {&x, &r, &update})
        EXPECT_TRUE(marks(*f, [&] { p.blocks.solve(x, r, update, block_colour::all, 1); }));
}

/// Fields that the operator can't read or write: of other sizes, and with the same numbers elsewhere.
std::vector<field<double>> unfit_fields(const problem<double>& p) {
    std::vector<field<double>> unfit(1); // without storage
    unfit.emplace_back(p.order, 12);
    unfit.emplace_back(p.plain, lattice::spinor_components);
    unfit.emplace_back(coordinate{2, 2, 2, 2}, lattice::spinor_components);
    unfit.emplace_back(site_order::blocked(p.cut.local_box(0), p.cut.global(), {4, 2, 2, 2}, 4),
                       lattice::spinor_components);
    return unfit;
}

TEST(WilsonClover, IsMisusedByAFieldOfAnotherShape) {
    const comm::job j = comm::job::single(small_job());
    const auto misused_by = [&](auto&& call) {
        std::string why;
        problem<double> shapes(j, {{4, 4, 4, 4}, {2, 2, 2, 2}}, {1, 1, 1, 1}, 4);
        for (field<double>& unfit : unfit_fields(shapes)) {
            problem<double> p(j, {{4, 4, 4, 4}, {2, 2, 2, 2}}, {1, 1, 1, 1}, 4);
            field<double> x = p.random(1), y = p.random(2);
            EXPECT_EQ(p.fast.why_misused(), "");

            EXPECT_EQ(call(p.fast, unfit, x, y), comm::status::misused);

            EXPECT_TRUE(std::ranges::equal(y.values(), p.random(2).values())) << "written";
            EXPECT_EQ(p.fast.apply(y, x), comm::status::misused) << "not for good";
            why = p.fast.why_misused();
        }
        return why;
    };
    const std::string shape = " does not have 24 components in the operator's site order";

    EXPECT_EQ(misused_by([](auto& d, auto& unfit, auto&, auto& y) { return d.apply(y, unfit); }),
              "x of apply()" + shape);
    EXPECT_EQ(misused_by([](auto& d, auto& unfit, auto& x, auto&) { return d.apply(unfit, x); }),
              "y of apply()" + shape);
    EXPECT_EQ(misused_by([](auto& d, auto& unfit, auto&, auto&) { return d.start_surface(unfit).finish(); }),
              "x of start_surface()" + shape);
    EXPECT_EQ(
        misused_by([](auto& d, auto& unfit, auto&, auto& y) { return d.start_surface(unfit).finish_and_add_to(y); }),
        "x of start_surface()" + shape);
    EXPECT_EQ(
        misused_by([](auto& d, auto& unfit, auto& x, auto&) { return d.start_surface(x).finish_and_add_to(unfit); }),
        "y of finish_and_add_to()" + shape);
}

TEST(SchwarzBlocks, AreMisusedByAFieldOfAnotherShape) {
    const comm::job j = comm::job::single(small_job());
    problem<double> p(j, {{4, 4, 4, 4}, {2, 2, 2, 2}}, {1, 1, 1, 1}, 4);
    field<double> plain(p.plain, lattice::spinor_components), x = p.random(1), y = p.zero();

    EXPECT_EQ(p.blocks.start_surface(plain, block_colour::red).finish(), comm::status::misused);
    EXPECT_EQ(p.blocks.start_surface(x, block_colour::red).finish_and_add_to(y), comm::status::misused)
        << "not for good";
    EXPECT_EQ(p.fast.why_misused(), "x of start_surface() does not have 24 components in the operator's site order");

    EXPECT_EQ(p.blocks.start_surface(x, block_colour::black).finish_and_add_to(y), comm::status::ok);
    EXPECT_EQ(p.fast.apply(y, x), comm::status::ok);
}

TEST(WilsonClover, ThrowsAtAFieldOfAnotherShapeWhereItReturnsNoStatus) {
    const comm::job j = comm::job::single(small_job());
    problem<double> p(j, {{4, 4, 4, 4}, {2, 2, 2, 2}}, {1, 1, 1, 1}, 4);
    field<double> x = p.random(1), y = p.random(2), r = p.random(3);
    auto hops = p.fast.start_surface(x);
    ASSERT_EQ(hops.finish(), comm::status::ok);
    const auto refused = [](auto&& call) {
        const std::string text = halocline_test::refusal(call);
        return text.substr(0, text.find(" has "));
    };

    for (field<double>& unfit : unfit_fields(p)) {
        EXPECT_EQ(refused([&] { p.fast.apply_block(y, unfit); }), "wilson_clover: x of apply_block()");
        EXPECT_EQ(refused([&] { p.fast.apply_block(unfit, x); }), "wilson_clover: y of apply_block()");
        EXPECT_EQ(refused([&] { hops.add_to(unfit); }), "wilson_clover: y of add_to()");
        EXPECT_EQ(refused([&] { p.blocks.solve(unfit, r, y, block_colour::all, 1); }), "schwarz_blocks: x of solve()");
        EXPECT_EQ(refused([&] { p.blocks.solve(x, unfit, y, block_colour::all, 1); }), "schwarz_blocks: r of solve()");
        EXPECT_EQ(refused([&] { p.blocks.solve(x, r, unfit, block_colour::all, 1); }),
                  "schwarz_blocks: update of solve()");
    }
    EXPECT_TRUE(std::ranges::equal(x.values(), p.random(1).values()));
    EXPECT_TRUE(std::ranges::equal(y.values(), p.random(2).values()));
    EXPECT_TRUE(std::ranges::equal(r.values(), p.random(3).values()));
}

/// Another object may place every site as the operator's order does.
TEST(WilsonClover, TakesFieldsOfAnEqualOrder) {
    const comm::job j = comm::job::single(small_job());
    problem<double> p(j, {{4, 4, 4, 4}, {2, 2, 2, 2}}, {1, 1, 1, 1}, 4);
    field<double> y(site_order::blocked(p.cut.local_box(0), p.cut.global(), {2, 2, 2, 2}, 4), 24);

    ASSERT_EQ(p.fast.apply(y, p.random(1)), comm::status::ok);

    EXPECT_LT(difference(y, p.expected(p.random(1))), rounding<double>);
}

TEST(PublicFiles, HaveTheKnownNorms) {
    struct known {
        const char* file;
        coordinate extents, block;
        double norm_of_d_one;
    };
    for (const known& k : {known{"4x4x4x4b6.0000id3n1", {4, 4, 4, 4}, {2, 2, 2, 2}, 227.892329439098},
                           known{"8x8x8x8b6.0000id3n1", {8, 8, 8, 8}, {4, 4, 4, 4}, 896.809175505568}}) {
        const std::string path = reference_file(k.file);
        if (path.empty()) GTEST_SKIP() << "no file " << k.file;
        const comm::job j = comm::job::single(small_job());
        const decomposition cut = decomposition::even(k.extents, {1, 1, 1, 1});
        const lattice::box local = cut.local_box(0);
        lattice::gauge_field gauge(site_order::lexicographic(k.extents), lattice::gauge_components);
        (void)lattice::read_links(lattice::open_gauge_file(path), local, gauge);
        wilson_clover<double> d(j, cut, dirac::padded_links(j, cut, gauge), {},
                                site_order::blocked(local, k.extents, k.block, 8));
        field<double> ones(d.order(), lattice::spinor_components), y(d.order(), lattice::spinor_components);
        for (std::int64_t site = 0; site < ones.volume(); ++site)
            for (int c = 0; c < lattice::spinor_components; c += 2) ones.at(site, c) = 1;

        ASSERT_EQ(d.apply(y, ones), comm::status::ok);

        EXPECT_NEAR(norm(y) / k.norm_of_d_one, 1, 1e-12);
    }
}

TEST(WilsonClover, EveryBoundaryEqualsTheReference) {
    using lattice::boundary;
    const comm::job j = comm::job::single(small_job());
    for (const boundary b : {boundary::periodic, boundary::antiperiodic, boundary::open}) {
        dirac::wilson_parameters parameters{.m0 = 0.1, .csw = 0.7};
        parameters.boundaries = {b, boundary::periodic, boundary::antiperiodic, b};
        problem<double> p(j, {{4, 2, 2, 8}, {2, 2, 2, 4}}, {1, 1, 1, 1}, 4, parameters);
        expect_apply_equals_reference(p);
    }
}

TEST(WilsonClover, EqualsTheReferenceWhereItReadsAhead) { // 12 MiB: more than fits in a cache
    const comm::job j = comm::job::single(small_job());
    for (int w : {8, 16}) {
        problem<double> p(j, {{8, 8, 8, 16}, {4, 4, 4, 4}}, {1, 1, 1, 1}, w);
        expect_apply_equals_reference(p);
    }
}

TEST(WilsonClover, ManyStepsSolveTheBlocks) {
    const comm::job j = comm::job::single(small_job());
    problem<double> p(j, {{4, 4, 4, 8}, {2, 4, 4, 4}}, {1, 1, 1, 1}, 8);
    const field<double> r_in = p.random(2);
    field<double> x = p.zero(), r = p.zero(), update = p.zero(), image = p.zero();
    r.copy_from(r_in);

    p.blocks.solve(x, r, update, block_colour::all, 150);

    p.fast.apply_block(image, x);
    EXPECT_LT(norm(r), 1e-11 * norm(r_in));
    EXPECT_LT(difference(image, r_in), 1e-11);
}

TEST(WilsonClover, BlockSolveLeavesZeroBlocksAlone) {
    const comm::job j = comm::job::single(small_job());
    problem<float> p(j, {{8, 8, 8, 8}, {4, 4, 4, 4}}, {1, 1, 1, 1}, 16);
    const field<float> x_in = p.random(3);
    field<float> x = p.zero(), r = p.zero(), update = p.zero();
    x.copy_from(x_in);
    r.at(0, 0) = 1; // one block has a residual

    p.blocks.solve(x, r, update, block_colour::all, 4);

    int changed = 0;
    for (std::int64_t site = 0; site < x.volume(); ++site) {
        const coordinate c = lattice::lexicographic_coordinate(site, {8, 8, 8, 8});
        const bool first_block = c[0] < 4 && c[1] < 4 && c[2] < 4 && c[3] < 4;
        for (int k = 0; k < lattice::spinor_components; ++k) {
            if (first_block)
                changed += x.at(site, k) != x_in.at(site, k) ? 1 : 0;
            else
                ASSERT_EQ(x.at(site, k), x_in.at(site, k)) << "site " << site;
        }
    }
    EXPECT_GT(changed, 0);
    EXPECT_TRUE(std::isfinite(norm(x)));
}

TEST(WilsonClover, ZeroStepsOnlyEliminateTheOddSites) {
    const comm::job j = comm::job::single(small_job());
    problem<double> p(j, {{4, 4, 4, 4}, {4, 4, 2, 2}}, {1, 1, 1, 1}, 4);
    field<double> x = p.zero(), r = p.random(2), update = p.zero();

    p.blocks.solve(x, r, update, block_colour::all, 0);

    for (std::int64_t site = 0; site < r.volume(); ++site) {
        const bool odd = lattice::parity(lattice::lexicographic_coordinate(site, {4, 4, 4, 4})) == 1;
        for (int c = 0; c < lattice::spinor_components; ++c)
            ASSERT_EQ(odd ? r.at(site, c) : update.at(site, c), 0) << "site " << site;
    }
}

TEST(WilsonClover, EverySimdTargetEqualsTheReference) {
    on_each_simd_target([] {
        const auto supports = [](std::int64_t target) { return (hwy::SupportedTargets() & target) != 0; };
        const int vector = supports(HWY_AVX3) ? 16 : supports(HWY_AVX2) ? 8 : 4;
        EXPECT_EQ(dirac::vector_lanes(), vector);
        // 8 blocks of each colour, which may or may not be split over 16 lanes
        const auto preferred = [](const coordinate& global, const coordinate& block) {
            return dirac::preferred_lane_width({{0, 0, 0, 0}, global}, global, block);
        };
        EXPECT_EQ(preferred({8, 8, 8, 8}, {4, 4, 4, 4}), vector);
        EXPECT_EQ(preferred({4, 4, 4, 4}, {2, 2, 2, 2}), std::min(vector, 8));
        // 5, 3 and 1 blocks of one colour, which can't be split: fewer lanes if they need no more outer indices
        EXPECT_EQ(preferred({30, 6, 6, 6}, {6, 6, 6, 6}), std::min(vector, 8));
        EXPECT_EQ(preferred({18, 6, 6, 6}, {6, 6, 6, 6}), 4);
        EXPECT_EQ(preferred({6, 6, 6, 6}, {6, 6, 6, 6}), 1);
        const comm::job j = comm::job::single(small_job());
        for (int w : lane_widths) {
            problem<double> p(j, {{8, 4, 8, 4}, {4, 4, 4, 4}}, {1, 1, 1, 1}, w);
            expect_apply_equals_reference(p);
            expect_residual_identity(p, block_colour::red);
            problem<float> q(j, {{8, 4, 8, 4}, {4, 4, 4, 4}}, {1, 1, 1, 1}, w);
            expect_apply_equals_reference(q);
            expect_residual_identity(q, block_colour::black);
        }
    });
}

TEST(WilsonClover, RefusesAnUnblockedOrderAndItsBlocksASingularDiagonal) {
    const comm::job j = comm::job::single(small_job());
    const decomposition cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    const dirac::padded_links links(j, cut, warm_links(cut, 0));
    const auto blocked = site_order::blocked(cut.local_box(0), cut.global(), {2, 2, 2, 2}, 4);

    const auto plain = site_order::lexicographic({4, 4, 4, 4});
    EXPECT_EQ(halocline_test::refusal([&] { wilson_clover<float>(j, cut, links, {}, plain); }),
              "wilson_clover needs a blocked site order of the local box 4.4.4.4");
    const auto in_pairs = site_order::blocked(cut.local_box(0), cut.global(), {2, 2, 2, 2}, 2);
    EXPECT_EQ(halocline_test::refusal([&] { wilson_clover<float>(j, cut, links, {}, in_pairs); }),
              "lane width is 2: the Wilson-clover operator and its multigrid take 1, 4, 8 or 16");
    // D itself inverts nothing
    wilson_clover<float> singular(j, cut, links, {.m0 = -4, .csw = 0}, blocked),
        regular(j, cut, links, {.m0 = -3, .csw = 0}, blocked);
    const auto refused = [&](wilson_clover<float>& d) {
        return halocline_test::refusal([&] { const dirac::schwarz_blocks<float> made(d, links); });
    };
    EXPECT_EQ(refused(singular).find("the site-local term (4 + m0 + clover) is singular"), 0U);
    EXPECT_EQ(refused(regular), "accepted");
}

TEST(WilsonClover, RefusesNoOrderAndOneOfAnotherBoxOfTheSameExtents) {
    const auto refused = [](const auto& order_of) {
        return refusal_of_all(2, [&](const comm::job& j) {
            const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
            const dirac::padded_links links(j, cut, warm_links(cut, j.rank()));
            wilson_clover<float>(j, cut, links, {}, order_of(cut, j.rank()));
        });
    };
    using made = std::shared_ptr<const site_order>;

    EXPECT_EQ(refused([](const decomposition&, int) { return made(); }),
              "wilson_clover needs a blocked site order of the local box 4.4.4.4");
    EXPECT_EQ(refused([](const decomposition& cut, int rank) -> made {
                  return site_order::blocked(cut.local_box(1 - rank), cut.global(), {2, 2, 2, 2}, 4);
              }),
              "wilson_clover: the site order is of a box at 0.0.0.4 of a lattice of 4.4.4.8; the operator is on one at "
              "0.0.0.0 of a lattice of 4.4.4.8");
    EXPECT_EQ(
        refused([](const decomposition& cut, int rank) -> made {
            return site_order::blocked(cut.local_box(rank), {4, 4, 4, 12}, {2, 2, 2, 2}, 4);
        }),
        "wilson_clover: the site order is of a box at 0.0.0.0 of a lattice of 4.4.4.12; the operator is on one at "
        "0.0.0.0 of a lattice of 4.4.4.8");
    EXPECT_EQ(refused([](const decomposition& cut, int rank) -> made {
                  return site_order::blocked(cut.local_box(rank), cut.global(), {2, 2, 2, rank == 0 ? 2 : 4}, 4);
              }),
              "ranks disagree on the blocks of the Wilson operator: rank 0 has '2.2.2.2', rank 1 has '2.2.2.4'; give "
              "every rank the same");
    EXPECT_EQ(refused([](const decomposition& cut, int rank) -> made { // a rank's own choice
                  return site_order::blocked(cut.local_box(rank), cut.global(), {2, 2, 2, 2}, rank == 0 ? 4 : 8);
              }),
              "accepted");
}

TEST(BlockedPlaces, AreTheStorageOfABlockedOrder) {
    const coordinate blocks[] = {{1, 1, 1, 1}, {2, 2, 2, 2}, {3, 1, 2, 1}, {4, 1, 1, 1},
                                 {4, 4, 2, 2}, {8, 4, 4, 1}, {4, 4, 4, 4}};
    const coordinate grids[] = {{1, 1, 1, 1}, {2, 1, 1, 1}, {3, 1, 1, 1}, {3, 3, 1, 1}, {5, 1, 1, 1},
                                {2, 2, 2, 1}, {3, 2, 2, 1}, {3, 3, 3, 1}, {2, 2, 2, 3}};
    int padded = 0;
    for (const coordinate& block : blocks)
        for (const coordinate& grid : grids)
            for (const int way : {0, 1, 2}) { // the whole lattice; half of one with two colours, from either colour on
                lattice::box local;
                coordinate global{};
                for (int mu = 0; mu < lattice::dimensions; ++mu) {
                    local.extents[mu] = block[mu] * grid[mu];
                    local.origin[mu] = way == 2 && mu == 0 ? block[mu] : 0;
                    global[mu] = local.extents[mu] * (way == 0 ? 1 : 2);
                }
                if (way == 2) global[0] += 2 * block[0];
                for (const int w : lane_widths) {
                    const auto order = site_order::blocked(local, global, block, w);
                    EXPECT_EQ(dirac::blocked_places(local, global, block, w), order->outer_sites() * w)
                        << lattice::to_string(grid) << " blocks of " << lattice::to_string(block) << ", W = " << w;
                    padded += order->outer_sites() * w > local.volume() ? 1 : 0;
                }
            }
    EXPECT_GT(padded, 100);
    EXPECT_THROW((void)dirac::blocked_places({{}, {4, 4, 4, 4}}, {4, 4, 4, 4}, {3, 4, 4, 4}, 4), input_error);
    EXPECT_THROW((void)dirac::blocked_places({{}, {4, 4, 4, 4}}, {4, 4, 4, 4}, {0, 4, 4, 4}, 4), input_error);
}

TEST(SchwarzBlocks, NameTheGlobalSiteOfASingularDiagonal) {
    comm::run_threads(
        2,
        [](const comm::job& j) {
            // the errors of rank 0, whose box is not the first one, are those reported
            const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2}).with_rank_order({1, 0});
            const dirac::padded_links links(j, cut, warm_links(cut, j.rank()));
            const auto order = site_order::blocked(cut.local_box(j.rank()), cut.global(), {2, 2, 2, 2}, 4);

            wilson_clover<float> d(j, cut, links, {.m0 = -4, .csw = 0}, order);
            const std::string text = halocline_test::refusal<dirac::singular_local_term>(
                [&] { const dirac::schwarz_blocks<float> made(d, links); });

            EXPECT_EQ(text,
                      "the site-local term (4 + m0 + clover) is singular at site 1.0.0.4: odd-even preconditioning "
                      "needs its inverse; change m0 or csw");
        },
        small_job());
}

TEST(SchwarzBlocks, SayThatLinksAreNotFinite) {
    const comm::job j = comm::job::single();
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    auto u = warm_links(cut, 0);
    u.values()[0] = std::numeric_limits<double>::quiet_NaN();
    const dirac::padded_links links(j, cut, u);
    const auto order = site_order::blocked(cut.local_box(0), cut.global(), {2, 2, 2, 2}, 4);
    wilson_clover<float> d(j, cut, links, {.m0 = -0.5, .csw = 0}, order);

    const std::string text = halocline_test::refusal([&] { const dirac::schwarz_blocks<float> made(d, links); });

    EXPECT_TRUE(text.starts_with("the links around site ")) << text;
    EXPECT_TRUE(text.ends_with(", m0 or csw are not finite numbers")) << text;
}

} // namespace
