// SPDX-License-Identifier: Apache-2.0
#include "dense_space.hpp"

#include <halocline/solvers/cg_normal.hpp>
#include <halocline/solvers/fgmres.hpp>
#include <halocline/solvers/minimal_residual.hpp>
#include <halocline_test/allocation_counter.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>

namespace {

using namespace halocline::solvers;
using namespace halocline_test;
using workspace = fgmres_workspace<vector>;

static_assert(vector_space<dense_space, vector>);
static_assert(linear_operator<dense_operator, vector>);

double distance(const vector& x, const Eigen::VectorXcd& y) {
    return (Eigen::Map<const Eigen::VectorXcd>(x.data(), y.size()) - y).norm() / y.norm();
}
Eigen::VectorXcd dense_solution(const matrix& a, const vector& b) {
    return a.partialPivLu().solve(Eigen::Map<const Eigen::VectorXcd>(b.data(), a.rows()));
}
// A well-conditioned matrix: identity plus a small random one.
matrix friendly_matrix(std::mt19937_64& g, int n, double strength = 0.5) {
    return matrix::Identity(n, n) + strength / std::sqrt(2.0 * n) * random_matrix(g, n);
}
fgmres_options with(double tolerance, int restart_length, int max_iterations = 1000) {
    fgmres_options o;
    o.tolerance = tolerance;
    o.restart_length = restart_length;
    o.max_iterations = max_iterations;
    return o;
}

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

// All solvers behind one face, for what must hold for each of them.
struct solver_case {
    const char* name;
    solve_report (*solve)(dense_space&, const matrix&, const vector&, vector&, double, int,
                          const std::function<void()>&);
};
const solver_case solvers_under_test[] = {
    {"gmres",
     [](dense_space& s, const matrix& a, const vector& b, vector& x, double tolerance, int most,
        const std::function<void()>& tick) {
         workspace work(s, 6, false);
         return gmres(s, dense_operator{&s, &a}, b, x, work, with(tolerance, 6, most),
                      [&](const iteration_event&) { tick(); });
     }},
    {"fgmres",
     [](dense_space& s, const matrix& a, const vector& b, vector& x, double tolerance, int most,
        const std::function<void()>& tick) {
         workspace work(s, 6);
         const matrix m = matrix::Identity(s.n, s.n) * 0.7;
         return fgmres(s, dense_operator{&s, &a}, dense_operator{&s, &m}, b, x, work, with(tolerance, 6, most),
                       [&](const iteration_event&) { tick(); });
     }},
    {"cg_normal",
     [](dense_space& s, const matrix& a, const vector& b, vector& x, double tolerance, int most,
        const std::function<void()>& tick) {
         cg_normal_workspace<vector> work(s);
         const matrix adjoint = a.adjoint();
         return cg_normal(s, dense_operator{&s, &a}, dense_operator{&s, &adjoint}, b, x, work, with(tolerance, 1, most),
                          [&](const iteration_event&) { tick(); });
     }},
    {"minimal_residual",
     [](dense_space& s, const matrix& a, const vector& b, vector& x, double tolerance, int most,
        const std::function<void()>& tick) {
         minimal_residual_workspace<vector> work(s);
         minimal_residual_options o;
         o.tolerance = tolerance;
         o.max_iterations = most;
         return minimal_residual(s, dense_operator{&s, &a}, b, x, work, o, [&](const iteration_event&) { tick(); });
     }},
};

class EverySolver : public testing::TestWithParam<solver_case> {};
INSTANTIATE_TEST_SUITE_P(Krylov, EverySolver, testing::ValuesIn(solvers_under_test),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST_P(EverySolver, AgreesWithDenseLu) {
    std::mt19937_64 g(20);
    for (int n : {1, 5, 30, 60}) {
        dense_space space{n};
        const matrix a = friendly_matrix(g, n);
        const vector b = random_vector(g, n);
        vector x = space.make();

        const solve_report report = GetParam().solve(space, a, b, x, 1e-12, 500, [] {});

        EXPECT_EQ(report.status, solve_status::converged);
        EXPECT_LE(distance(x, dense_solution(a, b)), 1e-10);
        EXPECT_LE(true_residual(a, x, b), 1.01e-12);
    }
}

TEST_P(EverySolver, SolvesTheZeroRightHandSideByZero) {
    std::mt19937_64 g(21);
    dense_space space{10};
    const matrix a = random_matrix(g, 10);
    vector x = random_vector(g, 10);

    const solve_report report = GetParam().solve(space, a, vector(10), x, 1e-12, 100, [] {});

    EXPECT_EQ(report.status, solve_status::converged);
    EXPECT_EQ(report.relative_residual, 0);
    EXPECT_EQ(report.iterations, 0);
    EXPECT_EQ(x, vector(10));
}

TEST_P(EverySolver, NeverConvergesOnAZeroMatrix) {
    dense_space space{10};
    const matrix a = matrix::Zero(10, 10);
    vector x = space.make();

    const solve_report report = GetParam().solve(space, a, vector(10, complex{1}), x, 1e-12, 100, [] {});

    EXPECT_EQ(report.status, solve_status::breakdown);
    EXPECT_LE(report.iterations, 1);
}

TEST_P(EverySolver, NeverConvergesWhereNoSolutionExists) {
    std::mt19937_64 g(22);
    const int n = 12;
    matrix a = friendly_matrix(g, n);
    a.row(3).setZero(); // the range lacks e_3
    const vector b = random_vector(g, n);
    dense_space space{n};
    vector x = space.make();

    const solve_report report = GetParam().solve(space, a, b, x, 1e-10, 100, [] {});

    EXPECT_FALSE(report.converged());
    EXPECT_NE(report.status, solve_status::not_finite);
    EXPECT_GE(report.relative_residual, 0.1);
    EXPECT_NEAR(report.relative_residual, true_residual(a, x, b), 1e-8);
}

TEST_P(EverySolver, ReportsANumberSpoiltAnywhereWithinOneIteration) {
    std::mt19937_64 g(23);
    const int n = 24;
    const matrix a = friendly_matrix(g, n);
    const vector b = random_vector(g, n);
    dense_space clean{n};
    vector x = clean.make();
    ASSERT_TRUE(GetParam().solve(clean, a, b, x, 1e-10, 200, [] {}).converged());
    for (double poison : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        int reported = 0;
        for (int k = 0; k < clean.operations; ++k) {
            dense_space space{n};
            space.spoil = k;
            space.poison = poison;
            space.solution = &x;
            int ticks = 0, at = -1;

            const solve_report report = GetParam().solve(space, a, b, x, 1e-10, 200, [&] {
                ++ticks;
                if (space.spoiled && at < 0) at = ticks;
            });

            ASSERT_TRUE(space.spoiled);
            if (report.status == solve_status::not_finite) {
                ++reported;
                // what only x holds is seen when the true residual is computed from it
                if (!space.spoiled_solution) {
                    EXPECT_LE(report.iterations, (at < 0 ? ticks : at) + 1) << "operation " << k;
                }
            } else { // spoilt after its last use: then the answer has to be right
                EXPECT_FALSE(space.spoiled_solution);
                ASSERT_TRUE(report.converged()) << to_string(report.status) << ", operation " << k;
                EXPECT_LE(true_residual(a, x, b), 1.01e-10) << "operation " << k;
            }
        }
        EXPECT_GE(reported, clean.operations * 8 / 10) << "of " << clean.operations;
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
        const matrix a = u * sigma.cast<complex>().asDiagonal() * v;
        const vector b = random_vector(g, n);
        dense_space space{n};
        vector x = space.make();

        const solve_report report = GetParam().solve(space, a, b, x, 1e-10, 60, [] {});

        const double residual = true_residual(a, x, b);
        if (report.converged()) {
            ++converged;
            // the solver's own b - A x rounds at epsilon ||A|| ||x||
            const double x_norm = Eigen::Map<Eigen::VectorXcd>(x.data(), n).norm();
            const double b_norm = Eigen::Map<const Eigen::VectorXcd>(b.data(), n).norm();
            ASSERT_LE(residual, 1e-10 + 4 * n * 2.3e-16 * x_norm / b_norm) << "system " << system;
        } else {
            ++refused;
        }
    }
    EXPECT_GT(refused, 250);
    const bool robust = std::string_view(GetParam().name) != "minimal_residual";
    EXPECT_GT(converged, robust ? 250 : -1);
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
