// SPDX-License-Identifier: Apache-2.0
// What must hold for each of the solvers.
#include "linear_systems.hpp"

#include <halocline/solvers/cg_normal.hpp>
#include <halocline/solvers/fgmres.hpp>
#include <halocline/solvers/minimal_residual.hpp>
#include <halocline_test/refusal.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <string_view>

namespace {

using namespace halocline::solvers;
using namespace halocline_test;

/// A common interface for all solvers: from x = 0, at most `most` iterations, tick() in each.
struct solver_case {
    const char* name;
    solve_report (*solve)(linear_system&, double tolerance, int most, const std::function<void()>& tick);
};
const solver_case solvers_under_test[] = {
    {"gmres",
     [](linear_system& s, double tolerance, int most, const std::function<void()>& tick) {
         return s.gmres(with(tolerance, 6, most), [&](const iteration_event&) { tick(); });
     }},
    {"fgmres",
     [](linear_system& s, double tolerance, int most, const std::function<void()>& tick) {
         const matrix m = matrix::Identity(s.space.n, s.space.n) * 0.7;
         return s.fgmres(dense_operator{&s.space, &m}, with(tolerance, 6, most),
                         [&](const iteration_event&) { tick(); });
     }},
    {"cg_normal",
     [](linear_system& s, double tolerance, int most, const std::function<void()>& tick) {
         cg_normal_workspace<vector> work(s.space);
         const matrix adjoint = s.a.adjoint();
         return cg_normal(s.space, s.apply(), dense_operator{&s.space, &adjoint}, s.b, s.x, work,
                          with(tolerance, 1, most), [&](const iteration_event&) { tick(); });
     }},
    {"minimal_residual",
     [](linear_system& s, double tolerance, int most, const std::function<void()>& tick) {
         minimal_residual_workspace<vector> work(s.space);
         solve_options o;
         o.tolerance = tolerance;
         o.max_iterations = most;
         return minimal_residual(s.space, s.apply(), s.b, s.x, work, o, [&](const iteration_event&) { tick(); });
     }},
};
/// For tests that don't observe the iterations.
void silently() {}

class EverySolver : public testing::TestWithParam<solver_case> {};
INSTANTIATE_TEST_SUITE_P(Krylov, EverySolver, testing::ValuesIn(solvers_under_test),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(EverySolver, AgreesWithDenseLu) {
    std::mt19937_64 g(20);
    for (int n : {1, 5, 30, 60}) {
        linear_system s = friendly_system(g, n);

        const solve_report report = GetParam().solve(s, 1e-12, 500, silently);

        EXPECT_EQ(report.status, solve_status::converged);
        EXPECT_LE(s.distance_from_lu(), 1e-10);
        EXPECT_LE(s.residual(), 1.01e-12);
    }
}

TEST_P(EverySolver, SolvesTheZeroRightHandSideByZero) {
    std::mt19937_64 g(21);
    linear_system s{random_matrix(g, 10), vector(10)};
    s.x = random_vector(g, 10);

    const solve_report report = GetParam().solve(s, 1e-12, 100, silently);

    EXPECT_EQ(report.status, solve_status::converged);
    EXPECT_EQ(report.relative_residual, 0);
    EXPECT_EQ(report.iterations, 0);
    EXPECT_EQ(s.x, vector(10));
}

TEST_P(EverySolver, MultipliesNoZeroVector) {
    std::mt19937_64 g(26);
    linear_system s = friendly_system(g, 10);

    const solve_report report = GetParam().solve(s, 1e-12, 0, silently);

    EXPECT_EQ(report.status, solve_status::max_iterations);
    EXPECT_EQ(report.relative_residual, 1);
    EXPECT_EQ(report.matvecs, 0);
}

TEST_P(EverySolver, SaysThatASourceIsTooSmall) {
    std::mt19937_64 g(24);
    const linear_system system = friendly_system(g, 10);
    for (const double size :
         {1e-130, 1e-160, 1e-200, 1e-297, 1e-300, 1e-308, 1e-318, std::numeric_limits<double>::denorm_min()}) {
        linear_system s = system;
        for (complex& number : s.b) number *= size;

        const solve_report report = GetParam().solve(s, 1e-10, 200, silently);

        const bool normal = size * 1e-10 > std::numeric_limits<double>::min();
        EXPECT_EQ(report.status, normal ? solve_status::converged : solve_status::source_too_small) << size;
        EXPECT_EQ(std::isnan(report.relative_residual), !normal) << size;
    }
}

TEST_P(EverySolver, ConvergesForASourceWhoseSquareOverflows) {
    std::mt19937_64 g(28);
    const linear_system system = friendly_system(g, 10);
    for (const double size : {1e130, 1e153, 1e155, 1e200, 1e290}) {
        linear_system s = system;
        for (complex& number : s.b) number *= size;

        const solve_report report = GetParam().solve(s, 1e-10, 200, silently);

        EXPECT_EQ(report.status, solve_status::converged) << size << ": " << to_string(report.status);
        for (vector* const v : {&s.x, &s.b})
            for (complex& number : *v) number /= size;
        EXPECT_LE(s.residual(), 1.01e-10) << size;
    }
}

TEST_P(EverySolver, SaysThatTheNormOfASourceIsNotFinite) {
    std::mt19937_64 g(29);
    linear_system s = friendly_system(g, 10);
    s.b.assign(10, complex{std::numeric_limits<double>::max()});
    s.x.assign(10, complex{7}); // of an earlier solve

    const solve_report report = GetParam().solve(s, 1e-10, 200, silently);

    EXPECT_EQ(report.status, solve_status::not_finite);
    EXPECT_EQ(report.iterations, 0);
    EXPECT_TRUE(std::isnan(report.relative_residual));
    EXPECT_EQ(s.x, vector(10, complex{0}));
}

TEST_P(EverySolver, RefusesAToleranceThatNoResidualMeetsOrMisses) {
    std::mt19937_64 g(30);
    linear_system s = friendly_system(g, 10);
    const auto refused = [&](double tolerance) {
        return refusal([&] { (void)GetParam().solve(s, tolerance, 200, silently); });
    };

    EXPECT_EQ(refused(std::numeric_limits<double>::quiet_NaN()), "solve_options::tolerance = nan: must be 0 or more");
    EXPECT_EQ(refused(-0.5), "solve_options::tolerance = -0.500000: must be 0 or more");
    EXPECT_EQ(refused(0), "accepted");
}

TEST_P(EverySolver, NeverConvergesOnAZeroMatrix) {
    linear_system s{matrix::Zero(10, 10), vector(10, complex{1})};

    const solve_report report = GetParam().solve(s, 1e-12, 100, silently);

    EXPECT_EQ(report.status, solve_status::breakdown);
    EXPECT_LE(report.iterations, 1);
}

TEST_P(EverySolver, NeverConvergesWhereNoSolutionExists) {
    std::mt19937_64 g(22);
    linear_system s = friendly_system(g, 12);
    s.a.row(3).setZero(); // the range lacks e_3

    const solve_report report = GetParam().solve(s, 1e-10, 100, silently);

    EXPECT_FALSE(report.converged());
    EXPECT_NE(report.status, solve_status::not_finite);
    EXPECT_GE(report.relative_residual, 0.1);
    EXPECT_NEAR(report.relative_residual, s.residual(), 1e-8);
}

TEST_P(EverySolver, ReportsANumberSpoiltAnywhereWithinOneIteration) {
    std::mt19937_64 g(23);
    const linear_system system = friendly_system(g, 24);
    linear_system clean = system;
    ASSERT_TRUE(GetParam().solve(clean, 1e-10, 200, silently).converged());
    const int operations = clean.space.operations;
    for (double poison : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        int reported = 0;
        for (int k = 0; k < operations; ++k) {
            linear_system s = system;
            s.space.spoil = k;
            s.space.poison = poison;
            s.space.solution = &s.x;
            int ticks = 0, at = -1;

            const solve_report report = GetParam().solve(s, 1e-10, 200, [&] {
                ++ticks;
                if (s.space.spoiled && at < 0) at = ticks;
            });

            ASSERT_TRUE(s.space.spoiled);
            if (report.status == solve_status::not_finite) {
                ++reported;
                // a NaN only in x is noticed when the true residual is computed from it
                if (!s.space.spoiled_solution) {
                    EXPECT_LE(report.iterations, (at < 0 ? ticks : at) + 1) << "operation " << k;
                }
            } else { // spoiled after its last use: then the answer has to be right
                EXPECT_FALSE(s.space.spoiled_solution);
                ASSERT_TRUE(report.converged()) << to_string(report.status) << ", operation " << k;
                EXPECT_LE(s.residual(), 1.01e-10) << "operation " << k;
            }
        }
        EXPECT_GE(reported, operations * 8 / 10) << "of " << operations;
    }
}

TEST_P(EverySolver, NeverClaimsConvergenceFalselyOnIllPosedSystems) {
    std::mt19937_64 g(24);
    std::uniform_real_distribution<double> uniform;
    int converged = 0, refused = 0;
    for (int system = 0; system < 2500; ++system) {
        const int n = 2 + system % 7;
        // singular values fall to 10^-20; every fifth matrix is exactly singular
        const double decades = 20 * uniform(g);
        Eigen::VectorXd sigma(n);
        for (int i = 0; i < n; ++i) sigma[i] = std::pow(10, -decades * i / (n - 1));
        if (system % 5 == 0) sigma[n - 1] = 0;
        const matrix u = random_matrix(g, n).householderQr().householderQ();
        const matrix v = random_matrix(g, n).householderQr().householderQ();
        linear_system s{u * sigma.cast<complex>().asDiagonal() * v, random_vector(g, n)};

        const solve_report report = GetParam().solve(s, 1e-10, 60, silently);

        const double residual = s.residual();
        if (report.converged()) {
            ++converged;
            // the solver's own b - A x rounds at epsilon ||A|| ||x||
            const double x_norm = Eigen::Map<Eigen::VectorXcd>(s.x.data(), n).norm();
            const double b_norm = Eigen::Map<const Eigen::VectorXcd>(s.b.data(), n).norm();
            ASSERT_LE(residual, 1e-10 + 4 * n * 2.3e-16 * x_norm / b_norm) << "system " << system;
        } else {
            ++refused;
        }
    }
    EXPECT_GT(refused, 250);
    const bool robust = std::string_view(GetParam().name) != "minimal_residual";
    EXPECT_GT(converged, robust ? 250 : 0);
}

TEST(InnerSolves, NeverComputeTheTrueResidual) {
    std::mt19937_64 g(27);
    const linear_system system = friendly_system(g, 24);
    solve_options o;
    o.verify = false;
    for (const int most : {3, 200}) {
        linear_system by_cg = system, by_mr = system;
        const matrix adjoint = system.a.adjoint();
        cg_normal_workspace<vector> cg(by_cg.space);
        minimal_residual_workspace<vector> mr(by_mr.space);
        o.max_iterations = most;

        const solve_report reports[] = {
            cg_normal(by_cg.space, by_cg.apply(), dense_operator{&by_cg.space, &adjoint}, by_cg.b, by_cg.x, cg, o),
            minimal_residual(by_mr.space, by_mr.apply(), by_mr.b, by_mr.x, mr, o)};

        for (const solve_report& report : reports) {
            EXPECT_EQ(report.status, most == 3 ? solve_status::max_iterations : solve_status::unverified);
            EXPECT_TRUE(std::isnan(report.relative_residual));
        }
        EXPECT_EQ(reports[0].matvecs, 2 * reports[0].iterations + 1);
        EXPECT_EQ(reports[1].matvecs, reports[1].iterations);
        EXPECT_NEAR(reports[0].recurrence_residual, by_cg.residual(), 1e-12);
        EXPECT_NEAR(reports[1].recurrence_residual, by_mr.residual(), 1e-12);
    }
}

} // namespace
