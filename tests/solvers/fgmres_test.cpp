// SPDX-License-Identifier: Apache-2.0
#include "linear_systems.hpp"

#include <halocline/solvers/fgmres.hpp>
#include <halocline_test/allocation_counter.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace halocline::solvers;
using namespace halocline_test;

static_assert(vector_space<dense_space, vector>);
static_assert(linear_operator<dense_operator, vector>);

TEST(Gmres, AgreesWithDenseLuOnRandomMatrices) {
    std::mt19937_64 g(1);
    for (int n : {1, 2, 3, 10, 37, 60}) {
        dense_space space{n};
        const matrix a = random_matrix(g, n);
        const vector b = random_vector(g, n);
        vector x = space.make();
        workspace work(space, n, false);

        const solve_report report = gmres(space, dense_operator{&space, &a}, b, x, work, with(1e-12, n));

        EXPECT_EQ(report.status, solve_status::converged) << "n = " << n;
        EXPECT_LE(report.iterations, n + 2);
        EXPECT_LE(distance(x, dense_solution(a, b)), 1e-9);
        EXPECT_NEAR(report.relative_residual, true_residual(a, x, b), 1e-14);
    }
}

TEST(Gmres, ConvergesForEveryRestartLength) {
    std::mt19937_64 g(2);
    const int n = 40;
    const matrix a = friendly_matrix(g, n);
    const vector b = random_vector(g, n);
    int previous = 1 << 20;
    for (int length : {1, 2, 5, 13, 40}) {
        dense_space space{n};
        vector x = space.make();
        workspace work(space, length, false);

        const solve_report report = gmres(space, dense_operator{&space, &a}, b, x, work, with(1e-11, length));

        EXPECT_TRUE(report.converged()) << to_string(report.status) << " with restart length " << length;
        EXPECT_LE(report.iterations, previous);
        EXPECT_LE(true_residual(a, x, b), 1.01e-11);
        EXPECT_EQ(report.history.size(), static_cast<std::size_t>(report.iterations));
        previous = report.iterations;
    }
}

TEST(Gmres, MakesOneGlobalSumPerIterationAndOneMore) {
    std::mt19937_64 g(3);
    const int n = 50;
    dense_space space{n};
    const matrix a = friendly_matrix(g, n, 1.0);
    const vector b = random_vector(g, n);
    vector x = space.make();
    workspace work(space, 30, false);
    fgmres_options o = with(1e-2, 30);
    o.verify = false;
    o.reorthogonalise_below = 0.1;

    const solve_report report = gmres(space, dense_operator{&space, &a}, b, x, work, o);

    EXPECT_EQ(report.status, solve_status::unverified);
    EXPECT_GT(report.iterations, 3);
    EXPECT_EQ(report.reorthogonalisations, 0);
    EXPECT_EQ(space.sums, report.iterations + 1);
    EXPECT_EQ(report.matvecs, report.iterations);
    EXPECT_TRUE(std::isnan(report.relative_residual));
    EXPECT_NEAR(report.recurrence_residual, true_residual(a, x, b), 1e-10);
}

TEST(Gmres, AllocatesNothingWithoutHistory) {
    std::mt19937_64 g(4);
    const int n = 50;
    dense_space space{n};
    const matrix a = friendly_matrix(g, n);
    const vector b = random_vector(g, n);
    vector x = space.make();
    workspace work(space, 7);
    fgmres_options o = with(1e-10, 7);
    o.keep_history = false;
    const dense_operator apply{&space, &a};

    const auto before = allocations();
    const solve_report plain = gmres(space, apply, b, x, work, o);
    const solve_report flexible = fgmres(space, apply, apply, b, x, work, o);
    const auto after = allocations();

    EXPECT_TRUE(plain.converged());
    EXPECT_TRUE(flexible.converged());
    EXPECT_EQ(after, before);
}

TEST(Gmres, KeepsTheBasisOrthonormalWhereDirectionsCancel) {
    std::mt19937_64 g(5);
    const int n = 30;
    dense_space space{n};
    const matrix a = matrix::Identity(n, n) + 1e-6 * random_matrix(g, n); // A v is nearly v
    const vector b = random_vector(g, n);
    vector x = space.make();
    workspace work(space, 3, false);

    const solve_report report = gmres(space, dense_operator{&space, &a}, b, x, work, with(1e-30, 3, 3));

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
    dense_space space{n};
    const matrix a = random_matrix(g, n), near = a + 0.5 * random_matrix(g, n), nearer = a + 0.05 * random_matrix(g, n);
    const matrix m[2] = {near.inverse(), nearer.inverse()};
    const vector b = random_vector(g, n);
    vector x = space.make();
    workspace work(space, 20);
    int calls = 0;
    auto precondition = [&](vector& z, const vector& r) { return dense_operator{&space, &m[calls++ % 2]}(z, r); };

    const solve_report report = fgmres(space, dense_operator{&space, &a}, precondition, b, x, work, with(1e-11, 20));

    EXPECT_TRUE(report.converged());
    EXPECT_EQ(report.preconditioner_applications, calls);
    EXPECT_EQ(report.preconditioner_applications, report.iterations);
    EXPECT_LE(distance(x, dense_solution(a, b)), 1e-8);
}

TEST(Fgmres, FindsTheSolutionInOneStepWithTheExactInverse) {
    std::mt19937_64 g(7);
    const int n = 20;
    dense_space space{n};
    const matrix a = random_matrix(g, n), inverse = a.inverse();
    const vector b = random_vector(g, n);
    vector x = space.make();
    workspace work(space, 10);

    const solve_report report =
        fgmres(space, dense_operator{&space, &a}, dense_operator{&space, &inverse}, b, x, work, with(1e-11, 10));

    EXPECT_TRUE(report.converged());
    EXPECT_EQ(report.iterations, 1);
}

TEST(Fgmres, StartsFromTheGuessThatItWasGiven) {
    std::mt19937_64 g(8);
    const int n = 25;
    dense_space space{n};
    const matrix a = friendly_matrix(g, n);
    const vector b = random_vector(g, n);
    const Eigen::VectorXcd solution = dense_solution(a, b);
    vector x(solution.data(), solution.data() + n);
    const vector solved = x;
    workspace work(space, 10);
    fgmres_options o = with(1e-10, 10);
    o.use_initial_guess = true;
    const dense_operator apply{&space, &a};

    const solve_report report = fgmres(space, apply, apply, b, x, work, o);

    EXPECT_TRUE(report.converged());
    EXPECT_EQ(report.iterations, 0);
    EXPECT_EQ(x, solved);
}

TEST(Fgmres, CallsBackOncePerIteration) {
    std::mt19937_64 g(9);
    const int n = 25;
    dense_space space{n};
    const matrix a = friendly_matrix(g, n);
    const vector b = random_vector(g, n);
    vector x = space.make();
    workspace work(space, 4, false);
    std::vector<double> seen;

    const solve_report report = gmres(space, dense_operator{&space, &a}, b, x, work, with(1e-10, 4),
                                      [&](const iteration_event& e) { seen.push_back(e.residual); });

    EXPECT_EQ(seen, report.history);
    EXPECT_GT(report.restarts, 0);
}

TEST(Fgmres, StopsAtMaxIterationsWithTheTrueResidual) {
    std::mt19937_64 g(10);
    const int n = 40;
    dense_space space{n};
    const matrix a = random_matrix(g, n);
    const vector b = random_vector(g, n);
    vector x = space.make();
    workspace work(space, 4, false);

    const solve_report report = gmres(space, dense_operator{&space, &a}, b, x, work, with(1e-10, 4, 10));

    EXPECT_EQ(report.status, solve_status::max_iterations);
    EXPECT_EQ(report.iterations, 10);
    EXPECT_EQ(report.restarts, 2);
    EXPECT_NEAR(report.relative_residual, true_residual(a, x, b), 1e-13);
}

TEST(Fgmres, ReportsStagnationOnlyWhenAsked) {
    const int n = 20; // the cyclic shift: GMRES(m) makes no progress for m < n
    matrix a = matrix::Zero(n, n);
    for (int i = 0; i < n; ++i) a((i + 1) % n, i) = 1;
    vector b(n);
    b[0] = 1;
    dense_space space{n};
    vector x = space.make();
    workspace work(space, 5, false);
    fgmres_options watched = with(1e-10, 5, 200);
    watched.stagnation_window = 12;

    const solve_report patient = gmres(space, dense_operator{&space, &a}, b, x, work, with(1e-10, 5, 200));
    const solve_report stopped = gmres(space, dense_operator{&space, &a}, b, x, work, watched);

    EXPECT_EQ(patient.status, solve_status::max_iterations);
    EXPECT_EQ(patient.iterations, 200);
    EXPECT_EQ(stopped.status, solve_status::stagnated);
    EXPECT_LE(stopped.iterations, 20);
}

TEST(Fgmres, PassesOnADeadPeerFromEverySum) {
    std::mt19937_64 g(11);
    const int n = 12;
    const matrix a = random_matrix(g, n);
    const vector b = random_vector(g, n);
    for (int k = 0; k < 12; ++k) {
        dense_space space{n};
        space.fail_sum = k;
        vector x = space.make();
        workspace work(space, n, false);

        const solve_report report = gmres(space, dense_operator{&space, &a}, b, x, work, with(1e-12, n));

        EXPECT_EQ(report.status, solve_status::failed_communication);
        EXPECT_EQ(report.communication, status::peer_died);
        EXPECT_EQ(space.sums, k + 1) << "went on after the failure";
    }
}

TEST(Gmres, SolvesASingularSystemWhoseSolutionExists) {
    const int n = 6;
    matrix a = matrix::Zero(n, n);
    for (int i = 0; i + 1 < n; ++i) a(i, i) = i + 1.0;
    vector b(n, complex{1});
    b[n - 1] = 0;
    dense_space space{n};
    vector x = space.make();
    workspace work(space, 20, false);

    const solve_report report = gmres(space, dense_operator{&space, &a}, b, x, work, with(1e-12, 20));

    EXPECT_TRUE(report.converged());
    EXPECT_LE(report.iterations, n);
}

TEST(Gmres, RefusesANilpotentMatrix) {
    const int n = 5; // A e_i = e_{i+1}, A e_4 = 0, b = e_1: the Krylov space closes without a solution
    matrix a = matrix::Zero(n, n);
    for (int i = 0; i + 1 < n; ++i) a(i + 1, i) = 1;
    vector b(n);
    b[0] = 1;
    dense_space space{n};
    vector x = space.make();
    workspace work(space, 20, false);

    const solve_report report = gmres(space, dense_operator{&space, &a}, b, x, work, with(1e-12, 20));

    EXPECT_EQ(report.status, solve_status::breakdown);
    EXPECT_LE(report.iterations, n);
}

} // namespace
