// SPDX-License-Identifier: Apache-2.0
#include <halocline/amg/solver.hpp>
#include <halocline/base/error.hpp>
#include <halocline/dirac/reference_operator.hpp>
#include <halocline_test/global_fields.hpp>
#include <halocline_test/refusal.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>

namespace {

using namespace halocline;
using lattice::coordinate;

struct outcome {
    amg::solver_report report;
    double residual = 0; ///< by the plain reference operator
    std::vector<amg::progress> seen;
};

struct system {
    double m0 = -0.4;
    double size = 1;         ///< of the source
    double roughness = 0.25; ///< of the links; 0: all are one
    std::array<lattice::boundary, lattice::dimensions> boundaries = dirac::wilson_parameters{}.boundaries;
};

/// Solves D x = size times random on a gauge field near unity, ranks as threads; returns what rank 0 reports.
outcome solve(const coordinate& global, const coordinate& rank_grid, const amg::solver_options& options,
              const system& given = {}) {
    outcome result;
    const coordinate block = options.blocks.value_or(amg::default_blocks(global));
    comm::run_threads(static_cast<int>(lattice::volume(rank_grid)), [&](const comm::job& j) {
        const auto cut = lattice::decomposition::even(global, rank_grid, block);
        const lattice::box local = cut.local_box(j.rank());
        const dirac::padded_links links(j, cut, halocline_test::links_near_one(local, cut.global(), given.roughness));
        dirac::wilson_parameters p;
        p.m0 = given.m0;
        p.boundaries = given.boundaries;
        const auto order = lattice::site_order::lexicographic(local.extents);
        lattice::field<double> x(order, lattice::spinor_components), b(order, lattice::spinor_components),
            dx(order, lattice::spinor_components);
        halocline_test::fill_random(b, local, global, 5);
        for (double& number : b.values()) number *= given.size;
        amg::solver solver(j, cut, links, p, options);
        std::vector<amg::progress> seen;
        solver.on_progress([&](const amg::progress& now) { seen.push_back(now); });

        solver.setup();
        const amg::solver_report report = solver.solve(x, b);

        dirac::reference_operator reference(j, cut, links, p);
        reference.apply(dx, x);
        comm::global_sum sum(j);
        std::array<double, 2> squares{};
        for (std::size_t i = 0; i < b.values().size(); ++i) {
            squares[0] += (b.values()[i] - dx.values()[i]) * (b.values()[i] - dx.values()[i]);
            squares[1] += b.values()[i] * b.values()[i];
        }
        ASSERT_EQ(sum(squares), comm::status::ok);
        if (j.rank() == 0) result = {report, std::sqrt(squares[0] / squares[1]), seen};
    });
    return result;
}

amg::solver_options twelve_vectors() {
    amg::solver_options options;
    options.vectors = 12;
    options.setup_iterations = 2;
    return options;
}

TEST(Solver, OfSeveralRightHandSidesGivesTheBitsOfEach) {
    std::vector<std::vector<double>> expected;
    std::vector<int> iterations;
    for (const int at_once : {1, 2, 5}) {
        comm::run_threads(2, [&](const comm::job& j) {
            const coordinate global{4, 4, 4, 8}, block{2, 2, 2, 2};
            const auto cut = lattice::decomposition::even(global, {1, 1, 1, 2}, block);
            const lattice::box local = cut.local_box(j.rank());
            const dirac::padded_links links(j, cut, halocline_test::links_near_one(local, cut.global(), 0.25));
            amg::solver_options options = twelve_vectors();
            options.blocks = block;
            options.at_once = at_once;
            amg::solver solver(j, cut, links, {.m0 = -0.4}, options);
            std::vector<amg::progress> seen;
            solver.on_progress([&](const amg::progress& now) { seen.push_back(now); });
            solver.setup();
            seen.clear();
            std::vector<lattice::field<double>> x, b;
            for (std::uint32_t k = 0; k < 5; ++k) {
                x.emplace_back(local.extents, lattice::spinor_components);
                b.emplace_back(local.extents, lattice::spinor_components);
                halocline_test::fill_random(b[k], local, global, k);
            }
            std::ranges::fill(b[3].values(), 0.0); // needs no iteration
            std::vector<lattice::field<double>*> to;
            std::vector<const lattice::field<double>*> from;
            for (std::size_t k = 0; k < 5; ++k) {
                to.push_back(&x[k]);
                from.push_back(&b[k]);
            }

            const std::vector<amg::solver_report> reports = solver.solve(to, from);

            if (j.rank() != 0) return;
            ASSERT_EQ(reports.size(), 5);
            if (at_once == 1) {
                for (std::size_t k = 0; k < 5; ++k) {
                    expected.emplace_back(x[k].values().begin(), x[k].values().end());
                    iterations.push_back(reports[k].outer.iterations);
                }
            }
            int longest = 0;
            for (std::size_t k = 0; k < 5; ++k) {
                EXPECT_TRUE(reports[k].converged()) << k;
                EXPECT_TRUE(std::ranges::equal(x[k].values(), expected[k])) << at_once << " at once, " << k;
                EXPECT_EQ(reports[k].outer.iterations, iterations[k]) << k;
                longest = std::max(longest, reports[k].outer.iterations);
            }
            EXPECT_EQ(reports[3].outer.iterations, 0);
            EXPECT_EQ(reports[0].at_once, at_once);
            EXPECT_EQ(reports[4].at_once, at_once == 5 ? 5 : 1); // 5 are 2 + 2 + 1
            if (at_once == 5) {                                  // one progress for each step that any takes
                ASSERT_EQ(seen.size(), static_cast<std::size_t>(longest));
                EXPECT_EQ(seen.front().systems, 4); // one needs none
                EXPECT_EQ(amg::to_string(seen.front()).find("iteration 1: residuals of 4 solves up to "), 0U);
                EXPECT_EQ(seen.back().step, longest);
                EXPECT_LE(seen.back().residual, options.tolerance);
            }
        });
    }
}

TEST(Solver, SmoothsSeveralRightHandSidesWithoutACoarseLevel) {
    const comm::job j = comm::job::single();
    const coordinate global{4, 4, 4, 8};
    const auto cut = lattice::decomposition::even(global, {1, 1, 1, 1}, {2, 2, 2, 2});
    const lattice::box local = cut.local_box(0);
    const dirac::padded_links links(j, cut, halocline_test::links_near_one(local, global, 0.25));
    amg::solver_options options;
    options.blocks = {2, 2, 2, 2};
    options.coarse_level = false;
    amg::solver solver(j, cut, links, {.m0 = -0.1}, options);
    solver.setup();
    std::vector<lattice::field<double>> x, b;
    std::vector<lattice::field<double>*> to;
    std::vector<const lattice::field<double>*> from;
    for (std::uint32_t k = 0; k < 3; ++k) {
        x.emplace_back(local.extents, lattice::spinor_components);
        b.emplace_back(local.extents, lattice::spinor_components);
        halocline_test::fill_random(b[k], local, global, k);
    }
    for (std::size_t k = 0; k < 3; ++k) {
        to.push_back(&x[k]);
        from.push_back(&b[k]);
    }

    const std::vector<amg::solver_report> reports = solver.solve(to, from);

    for (std::size_t k = 0; k < 3; ++k) {
        lattice::field<double> alone(local.extents, lattice::spinor_components);
        EXPECT_TRUE(reports[k].converged());
        EXPECT_EQ(reports[k].coarse_iterations_average(), 0);
        EXPECT_EQ(solver.solve(alone, b[k]).outer.iterations, reports[k].outer.iterations);
        EXPECT_TRUE(std::ranges::equal(alone.values(), x[k].values())) << k;
    }
}

/// A solver on 2 ranks, set up: body(job, the local box, the global lattice, the solver).
template <class Body>
void on_two_ranks(amg::solver_options options, Body&& body) {
    options.blocks = {2, 2, 2, 2};
    comm::run_threads(2, [&](const comm::job& j) {
        const auto cut = lattice::decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2}, {2, 2, 2, 2});
        const lattice::box local = cut.local_box(j.rank());
        const dirac::padded_links links(j, cut, halocline_test::links_near_one(local, cut.global(), 0.25));
        amg::solver solver(j, cut, links, {.m0 = -0.4}, options);
        solver.setup();
        body(j, local, cut.global(), solver);
    });
}

TEST(Solver, RefusesAnotherNumberOfSolutions) {
    amg::solver_options options = twelve_vectors();
    options.setup_iterations = 0;
    on_two_ranks(options, [](const comm::job& j, const lattice::box& local, const coordinate&, amg::solver& solver) {
        lattice::field<double> x(local.extents, lattice::spinor_components),
            b(local.extents, lattice::spinor_components);
        const std::vector<lattice::field<double>*> to{&x};
        const std::vector<const lattice::field<double>*> two{&b, &b}, one{&b};

        EXPECT_EQ(halocline_test::refusal([&] { (void)solver.solve(to, two); }),
                  "amg::solver: 1 fields x for 2 right-hand sides; there must be one for each");
        const std::string text = halocline_test::refusal([&] { (void)solver.solve(to, j.rank() == 0 ? one : two); });
        EXPECT_NE(text.find("the numbers of fields of amg::solver::solve()"), std::string::npos) << text;
        const std::vector<lattice::field<double>*> none{j.rank() == 0 ? &x : nullptr};
        EXPECT_EQ(halocline_test::refusal([&] { (void)solver.solve(none, one); }),
                  "amg::solver: field x is a null pointer");
        EXPECT_TRUE(solver.solve({}, {}).empty());
    });
}

TEST(Solver, RefusesASolutionThatIsSharedWithAnotherSystem) {
    amg::solver_options options = twelve_vectors();
    options.setup_iterations = 0;
    options.at_once = 1; // so that b of the second is still needed when x of the first is written
    on_two_ranks(
        options, [](const comm::job&, const lattice::box& local, const coordinate& global, amg::solver& solver) {
            lattice::field<double> x(local.extents, lattice::spinor_components),
                b(local.extents, lattice::spinor_components), c(local.extents, lattice::spinor_components);
            halocline_test::fill_random(b, local, global, 5);
            const auto refused = [&](std::vector<lattice::field<double>*> to,
                                     const std::vector<const lattice::field<double>*>& from) {
                return halocline_test::refusal([&] { (void)solver.solve(to, from); });
            };

            EXPECT_EQ(refused({&x, &x}, {&b, &c}), "amg::solver: field x of right-hand side 0 is also field x of "
                                                   "right-hand side 1");
            EXPECT_EQ(refused({&b, &x}, {&c, &b}), "amg::solver: field x of right-hand side 0 is also field b of "
                                                   "right-hand side 1");
            EXPECT_EQ(refused({&b}, {&b}), "accepted"); // in place
            EXPECT_EQ(refused({&x, &c}, {&b, &b}), "accepted");
        });
}

TEST(Solver, GoesOnFromTheSolutionThatItIsGiven) {
    amg::solver_options options = twelve_vectors();
    options.tolerance = 1e-5;
    on_two_ranks(options,
                 [](const comm::job& j, const lattice::box& local, const coordinate& global, amg::solver& solver) {
                     lattice::field<double> x(local.extents, lattice::spinor_components),
                         y(local.extents, lattice::spinor_components), b(local.extents, lattice::spinor_components);
                     halocline_test::fill_random(b, local, global, 5);
                     const amg::solver_report from_zero = solver.solve(x, b);
                     ASSERT_GT(from_zero.outer.iterations, 0);
                     y.copy_from(x);

                     EXPECT_EQ(solver.solve(y, b, amg::initial_guess::x).outer.iterations, 0); // it is solved already
                     EXPECT_TRUE(std::ranges::equal(x.values(), y.values()));
                     y.data()[0] += 1e-3;
                     std::vector<lattice::field<double>*> to{&y};
                     const std::vector<const lattice::field<double>*> from{&b};
                     const amg::solver_report near = solver.solve(to, from, amg::initial_guess::x).front();
                     EXPECT_TRUE(near.converged());
                     EXPECT_GT(near.outer.iterations, 0);
                     EXPECT_LT(near.outer.iterations, from_zero.outer.iterations);

                     const auto differ = j.rank() == 0 ? amg::initial_guess::zero : amg::initial_guess::x;
                     const std::string text = halocline_test::refusal([&] { (void)solver.solve(x, b, differ); });
                     EXPECT_NE(text.find("the initial guess of amg::solver::solve()"), std::string::npos) << text;
                 });
}

TEST(Solver, ReachesTheToleranceByTheReferenceOperator) {
    const outcome o = solve({4, 4, 4, 8}, {1, 1, 1, 1}, twelve_vectors());

    EXPECT_TRUE(o.report.converged());
    EXPECT_LE(o.residual, 1.01e-10);
    EXPECT_TRUE(o.report.notes.empty());
    EXPECT_EQ(o.report.coarse.solves, static_cast<std::uint64_t>(o.report.outer.iterations));
    EXPECT_GT(o.report.coarse_iterations_average(), 1);
    EXPECT_GT(o.report.coarse.seconds, 0);
    EXPECT_LE(o.report.coarse.seconds, o.report.solve_seconds);
}

TEST(Solver, SolvesAgainWithTheSameBitsAndReportsThatSolveAlone) {
    const comm::job j = comm::job::single();
    const auto cut = lattice::decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    const lattice::box local = cut.local_box(0);
    const dirac::padded_links links(j, cut, halocline_test::links_near_one(local, cut.global(), 0.25));
    amg::solver solver(j, cut, links, {.m0 = -0.4}, twelve_vectors());
    lattice::field<double> b(local.extents, lattice::spinor_components), x(local.extents, lattice::spinor_components),
        again(local.extents, lattice::spinor_components);
    halocline_test::fill_random(b, local, cut.global(), 5);
    halocline_test::fill_random(again, local, cut.global(), 6); // no initial guess
    solver.setup();
    const std::uint64_t before = x.version();

    const amg::solver_report first = solver.solve(x, b), second = solver.solve(again, b);

    EXPECT_NE(x.version(), before);
    EXPECT_TRUE(second.converged());
    EXPECT_TRUE(std::ranges::equal(again.values(), x.values()));
    EXPECT_EQ(second.outer.iterations, first.outer.iterations);
    EXPECT_EQ(second.coarse.solves, static_cast<std::uint64_t>(second.outer.iterations));
    EXPECT_EQ(second.coarse.iterations, first.coarse.iterations);
    EXPECT_EQ(second.coarse.global_sums, first.coarse.global_sums);
}

TEST(Solver, CountsAreTheSameOnAnyNumberOfRanks) {
    amg::solver_options options = twelve_vectors();
    options.blocks = coordinate{2, 2, 2, 2};
    const outcome one = solve({4, 4, 4, 8}, {1, 1, 1, 1}, options);

    for (const coordinate& grid : {coordinate{1, 1, 1, 2}, coordinate{1, 1, 1, 4}, coordinate{1, 1, 1, 3}}) {
        const outcome more = solve({4, 4, 4, 8}, grid, options);

        EXPECT_TRUE(more.report.converged());
        EXPECT_LE(more.residual, 1.01e-10);
        EXPECT_EQ(more.report.outer.iterations, one.report.outer.iterations) << lattice::to_string(grid);
        EXPECT_EQ(more.report.coarse.iterations, one.report.coarse.iterations) << lattice::to_string(grid);
        EXPECT_GT(more.report.coarse.exchanges, 0U);
        EXPECT_GT(more.report.coarse.global_sums, more.report.coarse.iterations);
    }
}

TEST(Solver, SizeOfTheSourceDoesNotCountUntilItIsTooSmall) {
    const auto of_size = [](double size) {
        return solve({4, 4, 4, 4}, {1, 1, 1, 1}, twelve_vectors(), {.size = size}).report.outer;
    };
    const solvers::solve_report usual = of_size(1), small = of_size(0x1p-900), denormal = of_size(0x1p-1060),
                                large = of_size(0x1p900);

    EXPECT_TRUE(small.converged());
    EXPECT_EQ(small.iterations, usual.iterations);
    EXPECT_TRUE(large.converged());
    EXPECT_EQ(large.iterations, usual.iterations);
    EXPECT_EQ(denormal.status, solvers::solve_status::source_too_small);
    EXPECT_EQ(denormal.iterations, 0);
}

TEST(Solver, TimeOnChipIsThatOfTheSlowestRank) {
    amg::solver_options options = twelve_vectors();
    options.blocks = coordinate{2, 2, 2, 2};
    const amg::coarse_costs alone = solve({4, 4, 4, 8}, {1, 1, 1, 1}, options).report.coarse,
                            // 2 + 1 + 1 blocks in t: the slowest rank in computing waits least
        uneven = solve({4, 4, 4, 8}, {1, 1, 1, 3}, options).report.coarse;

    EXPECT_NEAR(alone.on_chip_seconds + alone.halo_seconds + alone.global_sum_seconds, alone.seconds,
                1e-9 * alone.seconds);
    EXPECT_GT(uneven.on_chip_seconds + uneven.halo_seconds + uneven.global_sum_seconds, (1 + 1e-6) * uneven.seconds);
}

TEST(Solver, CoarseLevelAtLeastHalvesTheIterations) {
    amg::solver_options options = twelve_vectors();
    options.blocks = coordinate{2, 2, 2, 2}; // small blocks leave long wavelengths to the coarse level
    const outcome two_levels = solve({4, 4, 4, 16}, {1, 1, 1, 1}, options);

    options.coarse_level = false;
    const outcome smoother_alone = solve({4, 4, 4, 16}, {1, 1, 1, 1}, options);

    EXPECT_TRUE(two_levels.report.converged());
    EXPECT_GE(smoother_alone.report.outer.iterations, 2 * two_levels.report.outer.iterations);
    EXPECT_EQ(smoother_alone.report.coarse.solves, 0U);
}

TEST(Solver, OddLatticesFallBackAndSaySo) {
    for (const coordinate& global :
         {coordinate{7, 5, 3, 4}, coordinate{6, 6, 6, 6}, coordinate{4, 4, 4, 8}, coordinate{14, 4, 4, 4}}) {
        const outcome o = solve(global, {1, 1, 1, 1}, twelve_vectors());

        EXPECT_TRUE(o.report.converged()) << lattice::to_string(global);
        EXPECT_LE(o.residual, 1.01e-10);
        EXPECT_EQ(o.report.notes.size(), global[0] == 7 ? 2U : 0U);
    }
}

TEST(Solver, SaysThatOneBlockIsTheWholeLattice) {
    const outcome o = solve({5, 3, 3, 3}, {1, 1, 1, 1}, twelve_vectors());

    EXPECT_TRUE(o.report.converged());
    EXPECT_LE(o.residual, 1.01e-10);
    ASSERT_EQ(o.report.notes.size(), 3U);
    EXPECT_EQ(o.report.notes[1], "coarse lattice 1.1.1.1: one site, because one block is the whole lattice 5.3.3.3; "
                                 "smaller blocks may do better");
}

TEST(Solver, TellsOfCoarseSolvesThatEndAtTheirLimit) {
    amg::solver_options options = twelve_vectors();
    options.coarse_tolerance = 1e-6;
    options.coarse_restart_length = 2;
    options.coarse_max_restarts = 1;
    const outcome o = solve({8, 4, 4, 4}, {1, 1, 1, 1}, options);

    EXPECT_TRUE(o.report.converged());
    EXPECT_EQ(o.report.coarse.unsolved, o.report.coarse.solves);
    ASSERT_EQ(o.report.notes.size(), 1U);
    const std::string all = std::to_string(o.report.coarse.solves);
    EXPECT_EQ(o.report.notes[0].find(all + " of " + all + " coarse solves ended above their tolerance, "), 0U)
        << o.report.notes[0];
}

TEST(Solver, OddLatticesAreSolvedAlikeOnSeveralRanks) {
    amg::solver_options options = twelve_vectors();
    options.blocks = coordinate{2, 5, 2, 3}; // 3.1.2.1 of them
    const outcome one = solve({6, 5, 4, 3}, {1, 1, 1, 1}, options);

    for (const coordinate& grid : {coordinate{3, 1, 1, 1}, coordinate{1, 1, 2, 1}, coordinate{3, 1, 2, 1}}) {
        const outcome more = solve({6, 5, 4, 3}, grid, options);

        EXPECT_TRUE(more.report.converged()) << lattice::to_string(grid);
        EXPECT_LE(more.residual, 1.01e-10);
        EXPECT_EQ(more.report.outer.iterations, one.report.outer.iterations) << lattice::to_string(grid);
        EXPECT_EQ(more.report.notes, one.report.notes);
    }
    EXPECT_TRUE(one.report.converged());
    EXPECT_EQ(one.report.notes.size(), 2U); // additive, and without odd-even
}

TEST(Solver, ConvergesThoughTestVectorsCollapse) {
    const system unit{.m0 = 0.001, .roughness = 0, .boundaries = {}}; // constant modes have the eigenvalue m0
    for (const coordinate& grid : {coordinate{1, 1, 1, 1}, coordinate{1, 1, 1, 2}}) {
        const outcome o = solve({8, 8, 8, 8}, grid, {}, unit);

        EXPECT_TRUE(o.report.converged());
        EXPECT_LE(o.residual, 1.01e-10);
        EXPECT_LE(o.report.outer.iterations,
                  25); // 13 and 16; the vectors are rounding errors, so it depends on the cut
        ASSERT_EQ(o.report.notes.size(), 1U);
        EXPECT_EQ(o.report.notes[0].find("test vectors depend on each other: "), 0U) << o.report.notes[0];
        EXPECT_NE(o.report.notes[0].find(" of 896 columns"), std::string::npos) << o.report.notes[0];
    }
}

/// Constant modes have the eigenvalue 0: corrections are multiples of them, so large that nothing else is left of x.
TEST(Solver, GivesASingularOperatorUpAfterTheFirstCycle) {
    const outcome o = solve({4, 4, 4, 4}, {1, 1, 1, 1}, twelve_vectors(), {.m0 = 0, .roughness = 0, .boundaries = {}});

    EXPECT_EQ(o.report.outer.status, solvers::solve_status::breakdown) << to_string(o.report.outer.status);
    EXPECT_LE(o.report.outer.iterations, 50); // of 1000, in which the residual grows to 1e77
    EXPECT_LE(o.residual, 1 + 1e-12) << "x is worse than 0";
    EXPECT_NEAR(o.report.outer.relative_residual, o.residual, 1e-12);
}

TEST(Solver, ParametersThatAllowNoHierarchyAreToldAlikeOnEveryRank) {
    std::array<std::string, 2> texts;
    comm::run_threads(2, [&](const comm::job& j) {
        const auto cut = lattice::decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2}, {2, 2, 2, 4});
        const dirac::padded_links links(j, cut,
                                        halocline_test::links_near_one(cut.local_box(j.rank()), cut.global(), 0.25));
        amg::solver solver(j, cut, links, {.m0 = -3.999999999999, .csw = 0}, twelve_vectors());
        texts[j.rank()] = halocline_test::refusal<amg::no_hierarchy>([&] { solver.setup(); });
    });

    EXPECT_EQ(texts[0].find("set-up: the norm of a test vector is "), 0U) << texts[0];
    EXPECT_EQ(texts[0].find("nan"), std::string::npos) << texts[0];
    EXPECT_NE(texts[0].find(" (m0 = -3.999999999999, csw = 0)"), std::string::npos) << texts[0];
    EXPECT_EQ(texts[0], texts[1]);
}

TEST(Solver, RunsToTheIterationLimitAndSaysSo) {
    amg::solver_options options = twelve_vectors();
    options.max_iterations = 3;

    const outcome o = solve({4, 4, 4, 4}, {1, 1, 1, 1}, options);

    EXPECT_FALSE(o.report.converged());
    EXPECT_EQ(o.report.outer.status, solvers::solve_status::max_iterations);
    EXPECT_EQ(o.report.outer.iterations, 3);
    EXPECT_GT(o.report.outer.relative_residual, options.tolerance);
}

TEST(Solver, SmoothsWithTheSweepsAndBlockStepsAskedFor) {
    const auto iterations = [](bool coarse_level, int sweeps, int block_steps) {
        amg::solver_options options = twelve_vectors();
        options.blocks = {2, 2, 2, 2};
        options.coarse_level = coarse_level;
        options.sweeps = sweeps;
        options.block_steps = block_steps;
        const outcome o = solve({4, 4, 4, 8}, {1, 1, 1, 1}, options);
        EXPECT_TRUE(o.report.converged());
        return o.report.outer.iterations;
    };
    for (const bool coarse_level : {false, true}) { // two places ask for sweeps
        EXPECT_LT(iterations(coarse_level, 2, 4), iterations(coarse_level, 1, 4)) << coarse_level;
        EXPECT_LT(iterations(coarse_level, 4, 4), iterations(coarse_level, 2, 4)) << coarse_level;
        EXPECT_LT(iterations(coarse_level, 1, 4), iterations(coarse_level, 1, 1)) << coarse_level;
    }
}

TEST(Solver, TakesAsManyRestartsAsAskedFor) {
    amg::solver_options options = twelve_vectors();
    options.tolerance = 1e-200;
    options.restart_length = 2;
    options.max_restarts = 3;

    const outcome o = solve({4, 4, 4, 4}, {1, 1, 1, 1}, options);

    EXPECT_EQ(o.report.outer.status, solvers::solve_status::max_iterations);
    EXPECT_EQ(o.report.outer.iterations, 6);
}

/// With a tolerance beyond the last digit, where true residuals fall no further.
TEST(Solver, EndsWhereItStagnatesIfAskedTo) {
    amg::solver_options options = twelve_vectors();
    options.tolerance = 1e-200;
    options.restart_length = 10;
    for (const bool stop : {true, false}) {
        options.stagnation_stop = stop;

        const outcome o = solve({4, 4, 4, 4}, {1, 1, 1, 1}, options);

        EXPECT_EQ(o.report.outer.status,
                  stop ? solvers::solve_status::stagnated : solvers::solve_status::max_iterations)
            << to_string(o.report.outer.status);
        if (stop) {
            EXPECT_LE(o.report.outer.iterations, 50); // of 200
        }
        EXPECT_LE(o.residual, 1e-14);
    }
}

TEST(Solver, TellsItsProgress) {
    const outcome o = solve({4, 4, 4, 4}, {1, 1, 1, 1}, twelve_vectors());

    ASSERT_EQ(o.seen.size(), 12U + 2U + static_cast<std::size_t>(o.report.outer.iterations));
    EXPECT_EQ(amg::to_string(o.seen[0]), "set-up: test vector 1 of 12 smoothed");
    EXPECT_EQ(amg::to_string(o.seen[13]), "set-up: iteration 2 of 2");
    EXPECT_EQ(amg::to_string(o.seen[14]).substr(0, 22), "iteration 1: residual ");
}

TEST(Solver, TooSmallBlocksAreRefusedWithTheNumbers) {
    amg::solver_options options;
    options.blocks = coordinate{1, 1, 2, 2};
    try {
        static_cast<void>(solve({4, 4, 4, 4}, {1, 1, 1, 1}, options));
        FAIL() << "28 vectors in a block of 24 components";
    } catch (const input_error& e) {
        EXPECT_NE(std::string(e.what()).find("28"), std::string::npos) << e.what();
        EXPECT_NE(std::string(e.what()).find("24 components"), std::string::npos) << e.what();
    }
}

TEST(Solver, WithoutACoarseLevelBlocksNeedNoRoomForVectors) {
    amg::solver_options options;
    options.blocks = coordinate{1, 1, 2, 2};
    options.coarse_level = false;

    const outcome o = solve({4, 4, 4, 4}, {1, 1, 1, 1}, options);

    EXPECT_TRUE(o.report.converged());
    EXPECT_LE(o.residual, 1.01e-10);
}

TEST(Solver, ShortRestartsAreEnoughForItsReport) {
    for (const int length : {1, 2}) {
        amg::solver_options options = twelve_vectors();
        options.restart_length = length;
        options.max_iterations = 2;

        const outcome o = solve({4, 4, 4, 4}, {1, 1, 1, 1}, options);

        EXPECT_EQ(o.report.outer.iterations, 2);
        EXPECT_GT(o.report.solve_seconds, 0);
    }
}

TEST(Solver, RefusesNumbersThatNoSolveCanBeMadeWith) {
    const auto refused = [](const std::function<void(amg::solver_options&)>& change) {
        amg::solver_options options;
        change(options);
        return halocline_test::refusal([&] { static_cast<void>(solve({4, 4, 4, 4}, {1, 1, 1, 1}, options)); });
    };

    EXPECT_EQ(refused([](auto& o) { o.restart_length = 0; }),
              "solver_options::restart_length = 0: must be from 1 to 510");
    EXPECT_EQ(refused([](auto& o) { o.coarse_restart_length = 511; }),
              "solver_options::coarse_restart_length = 511: must be from 1 to 510");
    EXPECT_EQ(refused([](auto& o) { o.vectors = 5461; }), "solver_options::vectors = 5461: must be from 1 to 5460");
    EXPECT_EQ(refused([](auto& o) { o.sweeps = 0; }), "solver_options::sweeps = 0: must be from 1 to 1000000");
    EXPECT_EQ(refused([](auto& o) { o.max_restarts = -1; }),
              "solver_options::max_restarts = -1: must be from 1 to 1000000");
    EXPECT_EQ(refused([](auto& o) { o.tolerance = std::nan(""); }),
              "solver_options::tolerance = nan: must be from 1e-300 to 1");
}

TEST(Solver, RefusesALaneWidthOfOneRankOnAll) {
    for (const int width : {3, -1}) {
        std::array<std::string, 2> refused;
        comm::run_threads(2, [&](const comm::job& j) {
            const auto cut = lattice::decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2}, {4, 4, 4, 4});
            const lattice::box local = cut.local_box(j.rank());
            const dirac::padded_links links(j, cut, halocline_test::links_near_one(local, cut.global(), 0.25));
            amg::solver_options options = twelve_vectors();
            options.lane_width = j.rank() == 0 ? 4 : width;
            refused[j.rank()] =
                halocline_test::refusal<error>([&] { const amg::solver solver(j, cut, links, {.m0 = -0.4}, options); });
        });

        EXPECT_NE(refused[1].find("lane width is " + std::to_string(width)), std::string::npos) << refused[1];
        EXPECT_EQ(refused[0], refused[1]);
    }
}

// Without the hierarchy it would solve with the smoother alone, slowly, and not say so.
TEST(Solver, RefusesToSolveBeforeItsSetUp) {
    const comm::job j = comm::job::single();
    const auto cut = lattice::decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    const dirac::padded_links links(j, cut, halocline_test::links_near_one(cut.local_box(0), cut.global(), 0.25));
    amg::solver solver(j, cut, links, {.m0 = -0.4}, twelve_vectors());
    lattice::field<double> x(cut.local_box(0).extents, lattice::spinor_components),
        b(cut.local_box(0).extents, lattice::spinor_components);

    EXPECT_EQ(halocline_test::refusal([&] { static_cast<void>(solver.solve(x, b)); }),
              "amg::solver: solve() before setup(): there is no hierarchy yet");
}

TEST(Solver, RefusesToSolveAfterASetUpThatFailed) {
    const comm::job j = comm::job::single();
    const auto cut = lattice::decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    const dirac::padded_links links(j, cut, halocline_test::links_near_one(cut.local_box(0), cut.global(), 0.25));
    amg::solver solver(j, cut, links, {.m0 = -0.4}, twelve_vectors());
    lattice::field<double> x(cut.local_box(0).extents, lattice::spinor_components),
        b(cut.local_box(0).extents, lattice::spinor_components);
    halocline_test::fill_random(b, cut.local_box(0), cut.global(), 5);
    solver.setup();
    EXPECT_TRUE(solver.solve(x, b).converged());

    bool fails = true;
    solver.on_progress([&](const amg::progress&) {
        if (fails) throw input_error("stopped"); // stands for links that allow no hierarchy
    });

    EXPECT_EQ(halocline_test::refusal([&] { solver.setup(); }), "stopped (m0 = -0.4, csw = 1)");
    EXPECT_EQ(halocline_test::refusal([&] { static_cast<void>(solver.solve(x, b)); }),
              "amg::solver: solve() before setup(): there is no hierarchy yet");
    fails = false;
    solver.setup();
    EXPECT_TRUE(solver.solve(x, b).converged());
}

TEST(Solver, RefusesAFieldOfOneRankOnAll) {
    std::array<std::string, 2> texts;
    comm::run_threads(2, [&](const comm::job& j) {
        const auto cut = lattice::decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2}, {4, 4, 4, 4});
        const lattice::box local = cut.local_box(j.rank());
        const dirac::padded_links links(j, cut, halocline_test::links_near_one(local, cut.global(), 0.25));
        amg::solver solver(j, cut, links, {.m0 = -0.4}, twelve_vectors());
        lattice::field<double> x(local.extents, lattice::spinor_components), b(local.extents, j.rank() == 1 ? 12 : 24);
        solver.setup();
        texts[j.rank()] = halocline_test::refusal([&] { static_cast<void>(solver.solve(x, b)); });
    });

    EXPECT_EQ(texts[0], "amg::solver: field b has 12 components on a box of 4.4.4.4; must have 24 components on a "
                        "box of 4.4.4.4");
    EXPECT_EQ(texts[0], texts[1]);
}

TEST(Solver, RefusesACutForAnotherNumberOfRanksOnEveryRank) {
    for (const coordinate& grid : {coordinate{1, 1, 1, 1}, coordinate{2, 1, 1, 2}}) {
        std::array<std::string, 2> texts;
        comm::run_threads(2, [&](const comm::job& j) {
            const auto in_t = lattice::decomposition::even({8, 4, 4, 8}, {1, 1, 1, 2}),
                       other = lattice::decomposition::even({8, 4, 4, 8}, grid);
            const dirac::padded_links links(
                j, in_t, halocline_test::links_near_one(in_t.local_box(j.rank()), in_t.global(), 0.25));
            texts[j.rank()] =
                halocline_test::refusal([&] { const amg::solver solver(j, other, links, {}, twelve_vectors()); });
        });

        EXPECT_NE(texts[0], "accepted");
        EXPECT_EQ(texts[0], texts[1]);
    }
}

TEST(Solver, RefusesFieldsOfAnotherShape) {
    const comm::job j = comm::job::single();
    const auto cut = lattice::decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    const dirac::padded_links links(j, cut, halocline_test::links_near_one(cut.local_box(0), cut.global(), 0.25));
    amg::solver solver(j, cut, links, {.m0 = -0.4}, twelve_vectors());
    lattice::field<double> good(cut.local_box(0).extents, lattice::spinor_components), none,
        small({4, 4, 4, 2}, lattice::spinor_components), narrow(cut.local_box(0).extents, 12);

    solver.setup();

    for (lattice::field<double>* bad : {&none, &small, &narrow}) {
        const std::string b = halocline_test::refusal([&] { solver.solve(good, *bad); }),
                          x = halocline_test::refusal([&] { solver.solve(*bad, good); });
        EXPECT_EQ(b.find("amg::solver: field b has "), 0U) << b;
        EXPECT_EQ(x.find("amg::solver: field x has "), 0U) << x;
    }
}

TEST(Solver, RefusesOptionsAndMassesThatDifferBetweenRanks) {
    const auto refused = [](auto change) {
        std::array<std::string, 2> texts;
        comm::run_threads(2, [&](const comm::job& j) {
            const auto cut = lattice::decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2}, {4, 4, 4, 4});
            const lattice::box local = cut.local_box(j.rank());
            const dirac::padded_links links(j, cut, halocline_test::links_near_one(local, cut.global(), 0.25));
            amg::solver_options options = twelve_vectors();
            dirac::wilson_parameters p;
            if (j.rank() == 1) change(options, p);
            texts[j.rank()] = halocline_test::refusal([&] { const amg::solver solver(j, cut, links, p, options); });
        });
        EXPECT_EQ(texts[0], texts[1]);
        return texts[0];
    };

    EXPECT_NE(refused([](auto& o, auto&) { o.seed = 7; }).find("ranks disagree on the solver_options"),
              std::string::npos);
    EXPECT_NE(refused([](auto&, auto& p) { p.m0 = -0.3; }).find("the parameters of the Wilson operator"),
              std::string::npos);
    EXPECT_EQ(refused([](auto&, auto& p) { p.csw = std::nan(""); }), "wilson_parameters::csw = nan: must be finite");
    EXPECT_EQ(refused([](auto& o, auto&) { o.lane_width = 1; }), "accepted") << "may differ";
    EXPECT_EQ(refused([](auto& o, auto&) { o.lane_width = 2; }),
              "lane width is 2: the Wilson-clover operator and its multigrid take 1, 4, 8 or 16");
}

TEST(Solver, RefusesLinksOfAnotherCut) {
    std::array<std::string, 2> texts;
    comm::run_threads(2, [&](const comm::job& j) {
        const auto in_t = lattice::decomposition::even({8, 4, 4, 8}, {1, 1, 1, 2}),
                   in_x = lattice::decomposition::even({8, 4, 4, 8}, {2, 1, 1, 1});
        const dirac::padded_links links(j, in_t,
                                        halocline_test::links_near_one(in_t.local_box(j.rank()), in_t.global(), 0.25));
        texts[j.rank()] =
            halocline_test::refusal([&] { const amg::solver solver(j, in_x, links, {}, twelve_vectors()); });
        EXPECT_THROW(dirac::reference_operator(j, in_x, links, {}), input_error);
    });

    EXPECT_EQ(texts[0],
              "Wilson operator: the links of rank 0 are on a box of 8.4.4.4 at 0.0.0.0 of a lattice of 8.4.4.8; "
              "the operator is on a box of 4.4.4.8 at 0.0.0.0 of a lattice of 8.4.4.8: make both with the same "
              "cut");
    EXPECT_EQ(texts[0], texts[1]);
}

} // namespace
