// SPDX-License-Identifier: Apache-2.0
#include "linear_systems.hpp"

#include <halocline/solvers/fgmres.hpp>
#include <halocline_test/allocation_counter.hpp>
#include <halocline_test/refusal.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace {

using namespace halocline::solvers;
using namespace halocline_test;

static_assert(vector_space<dense_space, vector>);
static_assert(linear_operator<dense_operator, vector>);

TEST(Gmres, AgreesWithDenseLuOnRandomMatrices) {
    std::mt19937_64 g(1);
    for (int n : {1, 2, 3, 10, 37, 60}) {
        linear_system s = random_system(g, n);

        const solve_report report = s.gmres(with(1e-12, n));

        EXPECT_EQ(report.status, solve_status::converged) << "n = " << n;
        EXPECT_LE(report.iterations, n + 2);
        EXPECT_LE(s.distance_from_lu(), 1e-9);
        EXPECT_NEAR(report.relative_residual, s.residual(), 1e-14);
    }
}

TEST(Gmres, ConvergesForEveryRestartLength) {
    std::mt19937_64 g(2);
    const linear_system system = friendly_system(g, 40);
    int previous = 1 << 20;
    for (int length : {1, 2, 5, 13, 40}) {
        linear_system s = system;

        const solve_report report = s.gmres(with(1e-11, length));

        EXPECT_TRUE(report.converged()) << to_string(report.status) << " with restart length " << length;
        EXPECT_LE(report.iterations, previous);
        EXPECT_LE(s.residual(), 1.01e-11);
        EXPECT_EQ(report.history.size(), static_cast<std::size_t>(report.iterations));
        previous = report.iterations;
    }
}

TEST(Fgmres, RefusesAWorkspaceThatIsNotFlexible) {
    std::mt19937_64 g(2);
    linear_system s = friendly_system(g, 10);
    fgmres_workspace<vector> of_gmres(s.space, 5, false);

    EXPECT_EQ(refusal([&] { (void)fgmres(s.space, s.apply(), s.apply(), s.b, s.x, of_gmres); }),
              "fgmres: its workspace was made with flexible = false, for gmres() only");
}

TEST(Gmres, MakesOneGlobalSumPerIterationAndOneMore) {
    std::mt19937_64 g(3);
    linear_system s = friendly_system(g, 50, 1.0);
    fgmres_options o = with(1e-2, 30);
    o.verify = false;
    o.reorthogonalise_below = 0.1;

    const solve_report report = s.gmres(o);

    EXPECT_EQ(report.status, solve_status::unverified);
    EXPECT_GT(report.iterations, 3);
    EXPECT_EQ(report.reorthogonalisations, 0);
    EXPECT_EQ(s.space.sums, report.iterations + 1);
    EXPECT_EQ(report.matvecs, report.iterations);
    EXPECT_TRUE(std::isnan(report.relative_residual));
    EXPECT_NEAR(report.recurrence_residual, s.residual(), 1e-10);
}

TEST(Gmres, AllocatesNothingWithoutHistory) {
    std::mt19937_64 g(4);
    linear_system s = friendly_system(g, 50);
    workspace work(s.space, 7);
    fgmres_options o = with(1e-10, 7);
    o.keep_history = false;

    solve_report plain, flexible;
    const std::uint64_t made = allocations_in([&] {
        plain = gmres(s.space, s.apply(), s.b, s.x, work, o);
        flexible = fgmres(s.space, s.apply(), s.apply(), s.b, s.x, work, o);
    });

    EXPECT_TRUE(plain.converged());
    EXPECT_TRUE(flexible.converged());
    EXPECT_EQ(made, 0U);
}

/// The greatest product of two of the first `count` basis vectors.
double greatest_product(const workspace& work, std::size_t count) {
    double greatest = 0;
    for (std::size_t i = 0; i < count; ++i)
        for (std::size_t j = 0; j < i; ++j) greatest = std::max(greatest, std::abs(product(work.v[i], work.v[j])));
    return greatest;
}

// Each direction keeps a third of A v, so a basis made in one pass loses a factor of 9 in every step.
TEST(Gmres, KeepsTheBasisAsOrthogonalAsItIsTold) {
    std::mt19937_64 g(6);
    constexpr int n = 80, steps = 30;
    const linear_system system{matrix::Identity(n, n) + 0.03 * random_matrix(g, n), random_vector(g, n)};
    std::array<int, 3> repeated{};
    std::array<double, 3> products{};
    for (const int way : {0, 1, 2}) { // in one pass; as told; in two where a third is less than 1/sqrt(2)
        linear_system s = system;
        workspace work(s.space, steps, false);
        fgmres_options o = with(1e-30, steps, steps);
        o.reorthogonalise_below = way < 2 ? 0.1 : 0.7071;
        o.orthogonality = way == 1 ? 1e-8 : 0;
        o.verify = false; // else the true residual would take the place of v_0

        repeated[way] = gmres(s.space, s.apply(), s.b, s.x, work, o).reorthogonalisations;
        products[way] = greatest_product(work, steps);
    }

    EXPECT_GT(products[0], 1e-6);
    EXPECT_LE(products[1], 1e-8);
    EXPECT_GT(repeated[1], 0);
    EXPECT_LT(repeated[1], repeated[2] - 5);
    EXPECT_LE(products[2], 1e-13);
}

TEST(Gmres, KeepsTheBasisOrthonormalWhereDirectionsCancel) {
    std::mt19937_64 g(5);
    const int n = 30;
    matrix a = matrix::Identity(n, n) + 1e-6 * random_matrix(g, n); // A v is nearly v
    linear_system s{std::move(a), random_vector(g, n)};
    workspace work(s.space, 3, false);

    const solve_report report = gmres(s.space, s.apply(), s.b, s.x, work, with(1e-30, 3, 3));

    EXPECT_EQ(report.reorthogonalisations, 3);
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < i; ++j)
            EXPECT_LE(std::abs(Eigen::Map<Eigen::VectorXcd>(work.v[i].data(), n)
                                   .dot(Eigen::Map<Eigen::VectorXcd>(work.v[j].data(), n))),
                      1e-14);
}

TEST(Fgmres, ConvergesWithAPreconditionerThatVaries) {
    std::mt19937_64 g(6);
    const int n = 60;
    const matrix a = random_matrix(g, n), near = a + 0.5 * random_matrix(g, n), nearer = a + 0.05 * random_matrix(g, n);
    const matrix m[2] = {near.inverse(), nearer.inverse()};
    linear_system s{a, random_vector(g, n)};
    int calls = 0;

    const solve_report report = s.fgmres(
        [&](vector& z, const vector& r) {
            return dense_operator{&s.space, &m[calls++ % 2]}(z, r);
        },
        with(1e-11, 20));

    EXPECT_TRUE(report.converged());
    EXPECT_EQ(report.preconditioner_applications, calls);
    EXPECT_EQ(report.preconditioner_applications, report.iterations);
    EXPECT_LE(s.distance_from_lu(), 1e-8);
}

TEST(Fgmres, UsesEveryVectorOfAPreconditionerWhateverItsSize) {
    std::mt19937_64 g(12);
    const int n = 6;
    linear_system s = friendly_system(g, n);
    int calls = 0;

    const solve_report report = s.fgmres(
        [&](vector& z, const vector& r) {
            const double size = ++calls % 2 == 0 ? 1e-20 : 1; // the last of n vectors is a small one
            std::transform(r.begin(), r.end(), z.begin(), [&](complex value) { return size * value; });
            return status::ok;
        },
        with(1e-12, n));

    EXPECT_TRUE(report.converged()) << to_string(report.status);
    EXPECT_EQ(report.iterations, n);
    EXPECT_EQ(report.restarts, 0);
}

TEST(Fgmres, FindsTheSolutionInOneStepWithTheExactInverse) {
    std::mt19937_64 g(7);
    linear_system s = random_system(g, 20);
    const matrix inverse = s.a.inverse();

    const solve_report report = s.fgmres(dense_operator{&s.space, &inverse}, with(1e-11, 10));

    EXPECT_TRUE(report.converged());
    EXPECT_EQ(report.iterations, 1);
}

TEST(Fgmres, NeedsOneSumAnIterationIfItExpectsWhatTheGoodPreconditionerLeaves) {
    std::mt19937_64 g(13);
    const int n = 60;
    const matrix a = friendly_system(g, n).a, inverse = 7 * (a + 0.005 * random_matrix(g, n)).inverse();
    const linear_system system{a, random_vector(g, n)};
    std::array<solve_report, 2> reports;
    for (const int way : {0, 1}) {
        linear_system s = system;
        fgmres_options o = with(1e-11, 20);
        o.expected = 7 * way; // A M is nearly 7

        reports[way] = s.fgmres(dense_operator{&s.space, &inverse}, o);

        EXPECT_TRUE(reports[way].converged());
        EXPECT_LE(s.distance_from_lu(), 1e-9);
    }

    EXPECT_EQ(reports[1].iterations, reports[0].iterations);
    EXPECT_EQ(reports[0].reorthogonalisations, reports[0].iterations);
    EXPECT_LE(reports[1].reorthogonalisations, 1);
}

TEST(Fgmres, FindsTheSolutionInOneStepAlsoIfItExpectedThat) {
    std::mt19937_64 g(7);
    linear_system s = random_system(g, 20);
    const matrix inverse = s.a.inverse();
    fgmres_options o = with(1e-11, 10);
    o.expected = 1;

    const solve_report report = s.fgmres(dense_operator{&s.space, &inverse}, o);

    EXPECT_TRUE(report.converged());
    EXPECT_EQ(report.iterations, 1);
}

TEST(Fgmres, StartsFromTheGuessThatItWasGiven) {
    std::mt19937_64 g(8);
    linear_system s = friendly_system(g, 25);
    const Eigen::VectorXcd solution = dense_solution(s.a, s.b);
    const vector solved(solution.data(), solution.data() + solution.size());
    s.x = solved;
    fgmres_options o = with(1e-10, 10);
    o.use_initial_guess = true;

    const solve_report report = s.fgmres(s.apply(), o);

    EXPECT_TRUE(report.converged());
    EXPECT_EQ(report.iterations, 0);
    EXPECT_EQ(s.x, solved);
}

TEST(Fgmres, CallsBackOncePerIteration) {
    std::mt19937_64 g(9);
    linear_system s = friendly_system(g, 25);
    std::vector<double> seen;

    const solve_report report = s.gmres(with(1e-10, 4), [&](const iteration_event& e) { seen.push_back(e.residual); });

    EXPECT_EQ(seen, report.history);
    EXPECT_GT(report.restarts, 0);
}

TEST(Fgmres, StopsAtMaxIterationsWithTheTrueResidual) {
    std::mt19937_64 g(10);
    linear_system s = random_system(g, 40);

    const solve_report report = s.gmres(with(1e-10, 4, 10));

    EXPECT_EQ(report.status, solve_status::max_iterations);
    EXPECT_EQ(report.iterations, 10);
    EXPECT_EQ(report.restarts, 2);
    EXPECT_NEAR(report.relative_residual, s.residual(), 1e-13);
}

TEST(Fgmres, ReportsStagnationOnlyWhenAsked) {
    const int n = 20; // the cyclic shift: GMRES(m) makes no progress for m < n
    matrix shift = matrix::Zero(n, n);
    for (int i = 0; i < n; ++i) shift((i + 1) % n, i) = 1;
    vector b(n);
    b[0] = 1;
    linear_system s{shift, b};
    fgmres_options watched = with(1e-10, 5, 200);
    watched.stagnation_window = 12;

    const solve_report patient = s.gmres(with(1e-10, 5, 200));
    const solve_report stopped = s.gmres(watched);

    EXPECT_EQ(patient.status, solve_status::max_iterations);
    EXPECT_EQ(patient.iterations, 200);
    EXPECT_EQ(stopped.status, solve_status::stagnated);
    EXPECT_LE(stopped.iterations, 20);
}

TEST(Fgmres, PassesOnADeadPeerFromEverySum) {
    std::mt19937_64 g(11);
    const linear_system system = random_system(g, 12);
    for (int k = 0; k < 12; ++k) {
        linear_system s = system;
        s.space.fail_sum = k;

        const solve_report report = s.gmres(with(1e-12, 12));

        EXPECT_EQ(report.status, solve_status::failed_communication);
        EXPECT_EQ(report.communication, status::peer_died);
        EXPECT_EQ(s.space.sums, k + 1) << "went on after the failure";
    }
}

TEST(Gmres, RefusesAWorkspaceWithoutRoomForAStep) {
    dense_space space{4};
    for (const int length : {0, -1})
        EXPECT_EQ(refusal([&] { const workspace work(space, length); }),
                  "fgmres_workspace: a restart length of " + std::to_string(length) +
                      " leaves no room for a step; it must be at least 1");
}

TEST(Gmres, RefusesARestartThatItsWorkspaceHasNoRoomFor) {
    std::mt19937_64 g(13);
    linear_system s = friendly_system(g, 10);
    workspace work(s.space, 5);
    const std::string right = ": must be from 1 to 5, for which the workspace was made, or 0 for as much as that";

    for (const int length : {6, -1}) {
        const std::string text = "fgmres_options::restart_length = " + std::to_string(length) + right;
        EXPECT_EQ(refusal([&] { (void)gmres(s.space, s.apply(), s.b, s.x, work, with(1e-10, length)); }), text);
        EXPECT_EQ(refusal([&] { (void)fgmres(s.space, s.apply(), s.apply(), s.b, s.x, work, with(1e-10, length)); }),
                  text);
    }
}

TEST(Gmres, RestartsWhereItsWorkspaceEndsUnlessItIsToldALength) {
    std::mt19937_64 g(14);
    linear_system s = friendly_system(g, 30);
    workspace work(s.space, 4);

    const solve_report by_default = gmres(s.space, s.apply(), s.b, s.x, work),
                       told = gmres(s.space, s.apply(), s.b, s.x, work, with(1e-10, 4)),
                       shorter = gmres(s.space, s.apply(), s.b, s.x, work, with(1e-10, 3));

    EXPECT_GT(by_default.restarts, 0);
    EXPECT_EQ(by_default.history, told.history);
    EXPECT_NE(by_default.history, shorter.history);
}

TEST(Gmres, SolvesASingularSystemWhoseSolutionExists) {
    const int n = 6;
    matrix a = matrix::Zero(n, n);
    for (int i = 0; i + 1 < n; ++i) a(i, i) = i + 1.0;
    vector b(n, complex{1});
    b[n - 1] = 0;
    linear_system s{a, b};

    const solve_report report = s.gmres(with(1e-12, 20));

    EXPECT_TRUE(report.converged());
    EXPECT_LE(report.iterations, n);
}

TEST(Gmres, RefusesANilpotentMatrix) {
    const int n = 5; // A e_i = e_{i+1}, A e_4 = 0, b = e_1: the Krylov space closes without a solution
    matrix a = matrix::Zero(n, n);
    for (int i = 0; i + 1 < n; ++i) a(i + 1, i) = 1;
    vector b(n);
    b[0] = 1;
    linear_system s{a, b};

    const solve_report report = s.gmres(with(1e-12, 20));

    EXPECT_EQ(report.status, solve_status::breakdown);
    EXPECT_LE(report.iterations, n);
}

/// As where an operator is singular and corrections are so large that they round everything else away.
TEST(Fgmres, LeavesXAsItWasBeforeACycleThatMadeTheResidualGrow) {
    std::mt19937_64 g(31);
    for (const int good_cycles : {0, 1, 2})
        for (const bool guessed : {false, true}) {
            const linear_system system = friendly_system(g, 20);
            linear_system before = system, after = system;
            before.x = after.x = random_vector(g, 20);
            fgmres_options o = with(1e-12, 2, 2 * good_cycles);
            o.use_initial_guess = guessed;
            const solve_report expected = before.fgmres(before.apply(), o);
            const int first_residual = guessed ? 1 : 0;
            int applied = 0;
            const auto wrong = [&](vector& y, const vector& x) { // from the residual after the next cycle on
                const status s = after.apply()(y, x);
                if (++applied >= first_residual + 3 * (good_cycles + 1)) after.space.scale(y, 1e6);
                return s;
            };
            workspace work(after.space, 2);
            o.max_iterations = 100;

            const solve_report report = fgmres(after.space, wrong, after.apply(), after.b, after.x, work, o);

            EXPECT_EQ(report.status, solve_status::breakdown) << to_string(report.status);
            EXPECT_EQ(report.iterations, 2 * (good_cycles + 1));
            EXPECT_EQ(after.x, before.x) << good_cycles << guessed;
            EXPECT_EQ(report.relative_residual, expected.relative_residual);
        }
}

/// As where an operator is singular: each cycle's true residual is three times ||b||, which is no tenfold growth.
TEST(Fgmres, LeavesNoXThatIsWorseThanZero) {
    std::mt19937_64 g(37);
    for (const bool guessed : {false, true}) {
        linear_system s = friendly_system(g, 20);
        if (guessed) s.x = random_vector(g, 20);
        fgmres_options o = with(1e-12, 20, 60);
        o.use_initial_guess = guessed;
        int applied = 0;
        const auto wrong = [&](vector& y, const vector& x) {
            const status done = s.apply()(y, x);
            // The first cycle solves the system, so that this residual is b - 4 b.
            if (const int residual = o.restart_length + (guessed ? 2 : 1); ++applied >= residual)
                std::ranges::transform(s.b, y.begin(), [](const auto& v) { return 4.0 * v; });
            return done;
        };
        workspace work(s.space, o.restart_length);

        const solve_report report = fgmres(s.space, wrong, s.apply(), s.b, s.x, work, o);

        EXPECT_FALSE(report.converged());
        EXPECT_EQ(s.x == s.space.make(), !guessed) << "a guess may have been no better";
        if (!guessed) {
            EXPECT_EQ(report.relative_residual, 1);
        }
    }
}

} // namespace
