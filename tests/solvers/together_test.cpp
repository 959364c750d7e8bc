// SPDX-License-Identifier: Apache-2.0
// Several systems in lockstep, compared bit by bit with each of them alone.
#include "linear_systems.hpp"

#include <halocline/solvers/fgmres.hpp>
#include <halocline_test/allocation_counter.hpp>
#include <halocline_test/refusal.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace halocline::solvers;
using namespace halocline_test;

using fields = std::span<vector* const>;
using const_fields = std::span<const vector* const>;

/// Sums the products, or the norms, of several vectors at once.
struct summing_space : dense_space {
    using dense_space::multi_dot;

    status multi_dot(std::span<const dot_request<vector>> requests) {
        const int before = sums;
        for (const dot_request<vector>& r : requests) (void)multi_dot(r.v, *r.x, r.products);
        sums = before;
        return summed();
    }
    status norms(const_fields x, std::span<double> results) {
        const int before = sums;
        for (std::size_t k = 0; k < x.size(); ++k) (void)norm(*x[k], results[k]);
        sums = before;
        return summed();
    }
};
static_assert(sums_of_several<summing_space, vector>);
static_assert(!sums_of_several<dense_space, vector>);

/// A x = b_k for several b_k.
template <class Space>
struct several {
    matrix a;
    std::vector<vector> b;
    int length;
    Space space{{static_cast<int>(a.rows())}};
    std::vector<vector> x = std::vector<vector>(b.size(), space.make());
    std::vector<workspace> work = std::vector<workspace>(b.size(), workspace(space, length));
    int calls = 0, largest_call = 0, smallest_call = 1 << 20;

    [[nodiscard]] std::vector<one_system<vector>> systems() {
        std::vector<one_system<vector>> all;
        for (std::size_t k = 0; k < b.size(); ++k) all.push_back({&b[k], &x[k], &work[k]});
        return all;
    }
    [[nodiscard]] auto apply() {
        return [this](fields y, const_fields v) {
            const auto count = static_cast<int>(v.size());
            ++calls;
            largest_call = std::max(largest_call, count);
            smallest_call = std::min(smallest_call, count);
            for (std::size_t k = 0; k < v.size(); ++k) (void)dense_operator{&space, &a}(*y[k], *v[k]);
            return status::ok;
        };
    }
    /// A diagonal.
    [[nodiscard]] static auto scaling() {
        return [](fields z, const_fields r) {
            for (std::size_t k = 0; k < r.size(); ++k)
                for (std::size_t i = 0; i < r[k]->size(); ++i)
                    (*z[k])[i] = (*r[k])[i] / (1.0 + 0.01 * static_cast<double>(i));
            return status::ok;
        };
    }
    template <class Callback = silent>
    std::vector<solve_report> gmres(const fgmres_options& o, Callback&& callback = {}) {
        std::vector<solve_report> reports(b.size());
        gmres_together<vector>(space, apply(), systems(), reports, o, callback);
        return reports;
    }
};

/// Right-hand sides that end after different numbers of iterations, for different reasons.
template <class Space = summing_space>
several<Space> mixed(int n, int length, double strength = 0.9) {
    std::mt19937_64 g(11);
    matrix a = friendly_matrix(g, n, strength);
    a.row(n - 1).setZero(); // an eigenvector of both A and its transpose
    a.col(n - 1).setZero();
    a(n - 1, n - 1) = 2;
    vector eigenvector(n), tiny = random_vector(g, n), spoilt = random_vector(g, n), denormal(n);
    eigenvector[n - 1] = 3;
    for (complex& value : tiny) value *= 1e-150;
    spoilt[2] = std::numeric_limits<double>::quiet_NaN();
    denormal[1] = 1e-310;
    return {std::move(a),
            {random_vector(g, n), eigenvector, vector(n), tiny, spoilt, random_vector(g, n), denormal},
            length};
}

void expect_equal(const solve_report& together, const solve_report& alone, std::size_t k) {
    EXPECT_EQ(together.status, alone.status) << k;
    EXPECT_EQ(together.iterations, alone.iterations) << k;
    EXPECT_EQ(together.restarts, alone.restarts) << k;
    EXPECT_EQ(together.matvecs, alone.matvecs) << k;
    EXPECT_EQ(together.preconditioner_applications, alone.preconditioner_applications) << k;
    EXPECT_EQ(together.reorthogonalisations, alone.reorthogonalisations) << k;
    EXPECT_EQ(together.history, alone.history) << k;
    const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    EXPECT_TRUE(same(together.relative_residual, alone.relative_residual)) << k;
    EXPECT_TRUE(same(together.recurrence_residual, alone.recurrence_residual)) << k;
}

TEST(Together, EachTakesTheStepsThatItTakesAlone) {
    for (const int length : {4, 60}) {
        for (const int most : {6, 1000}) { // iterations: not enough; enough
            const fgmres_options options = with(1e-11, length, most);
            auto all = mixed(40, length);
            const std::vector<solve_report> reports = all.gmres(options);
            bool restarted = false;
            for (std::size_t k = 0; k < reports.size(); ++k) {
                halocline_test::linear_system one{all.a, all.b[k]};
                const solve_report alone = one.gmres(options);

                expect_equal(reports[k], alone, k);
                EXPECT_EQ(all.x[k], one.x) << k;
                restarted = restarted || alone.restarts > 0;
            }
            EXPECT_EQ(restarted, length == 4);
            EXPECT_EQ(reports[0].status, most == 6 ? solve_status::max_iterations : solve_status::converged);
            EXPECT_EQ(reports[1].iterations, 1);
            EXPECT_EQ(reports[2].iterations, 0);
            EXPECT_EQ(reports[4].status, solve_status::not_finite);
            EXPECT_EQ(reports[6].status, solve_status::source_too_small);
        }
    }
}

TEST(Together, APreconditionerIsAppliedToAllThatAreLeft) {
    const fgmres_options options = with(1e-11, 20);
    auto all = mixed(40, 20);
    std::vector<solve_report> reports(all.b.size());
    fgmres_together<vector>(all.space, all.apply(), all.scaling(), all.systems(), reports, options);
    for (std::size_t k = 0; k < reports.size(); ++k) {
        halocline_test::linear_system one{all.a, all.b[k]};
        const solve_report alone = one.fgmres(
            [&](vector& z, const vector& r) {
                vector* const to = &z;
                const vector* const from = &r;
                return all.scaling()(fields(&to, 1), const_fields(&from, 1));
            },
            options);

        expect_equal(reports[k], alone, k);
        EXPECT_EQ(all.x[k], one.x) << k;
    }
    EXPECT_EQ(all.largest_call, 4); // not those that have ended before their first step
    EXPECT_EQ(all.smallest_call, 1);
}

TEST(Together, TakesTheSumsAndCallsOfTheLongestSolve) {
    const fgmres_options options = with(1e-11, 60);
    std::mt19937_64 g(3);
    matrix a = friendly_matrix(g, 40);
    const std::vector<vector> b{random_vector(g, 40), random_vector(g, 40), random_vector(g, 40)};
    several<summing_space> all{a, b, 60};
    const std::vector<solve_report> reports = all.gmres(options);
    int longest = 0;
    for (const solve_report& r : reports) longest = std::max(longest, r.iterations);
    ASSERT_GT(longest, 5);
    // of b, two in each step, and of the true residuals where systems end in different steps
    EXPECT_LE(all.space.sums, 1 + 2 * longest + 3);
    EXPECT_LE(all.calls, longest + 3);

    several<dense_space> without_shared_sums{a, b, 60};
    const std::vector<solve_report> same = without_shared_sums.gmres(options);
    for (std::size_t k = 0; k < b.size(); ++k) expect_equal(same[k], reports[k], k);
    EXPECT_GT(without_shared_sums.space.sums, 2 * all.space.sums);
}

TEST(Together, StartFromTheirInitialGuesses) {
    fgmres_options options = with(1e-11, 5);
    options.use_initial_guess = true;
    auto all = mixed(30, 5);
    std::mt19937_64 g(5);
    for (vector& x : all.x) x = random_vector(g, 30);
    const std::vector<vector> guesses = all.x;
    const std::vector<solve_report> reports = all.gmres(options);
    for (std::size_t k = 0; k < reports.size(); ++k) {
        halocline_test::linear_system one{all.a, all.b[k]};
        one.x = guesses[k];
        const solve_report alone = one.gmres(options);

        expect_equal(reports[k], alone, k);
        EXPECT_EQ(all.x[k], one.x) << k;
    }
}

TEST(Together, AFailedSumEndsAllThatAreLeft) {
    const fgmres_options options = with(1e-11, 5);
    auto healthy = mixed(30, 5);
    const std::vector<solve_report> ended_well = healthy.gmres(options);
    for (int sum = 0; sum < healthy.space.sums; ++sum) {
        auto all = mixed(30, 5);
        all.space.fail_sum = sum;
        const std::vector<solve_report> reports = all.gmres(options);
        int failed = 0;
        for (std::size_t k = 0; k < reports.size(); ++k) {
            if (reports[k].status != solve_status::failed_communication) {
                EXPECT_EQ(reports[k].status, ended_well[k].status) << sum;
                continue;
            }
            ++failed;
            EXPECT_EQ(reports[k].communication, status::peer_died);
            EXPECT_TRUE(std::isnan(reports[k].relative_residual));
        }
        EXPECT_GT(failed, 0) << sum;
    }
}

TEST(Together, AFailedOperatorOrPreconditionerEndsAllThatAreLeft) {
    const fgmres_options options = with(1e-11, 5);
    for (const bool preconditioner : {false, true}) {
        auto all = mixed(30, 5);
        int left = 4;
        const auto fails_at_last = [&](auto inner) {
            return [&left, inner](fields y, const_fields v) mutable {
                return --left > 0 ? inner(y, v) : status::timed_out;
            };
        };
        std::vector<solve_report> reports(all.b.size());
        if (preconditioner)
            fgmres_together<vector>(all.space, all.apply(), fails_at_last(all.scaling()), all.systems(), reports,
                                    options);
        else
            fgmres_together<vector>(all.space, fails_at_last(all.apply()), all.scaling(), all.systems(), reports,
                                    options);
        EXPECT_EQ(reports[1].iterations, 1); // ended before
        for (const std::size_t k : {0U, 3U, 5U}) {
            EXPECT_EQ(reports[k].status, solve_status::failed_communication);
            EXPECT_EQ(reports[k].communication, status::timed_out);
            EXPECT_EQ(reports[k].preconditioner_applications, preconditioner ? 3 : reports[k].matvecs + 1) << k;
        }
    }
}

TEST(Together, CallbacksNameTheSystem) {
    auto all = mixed(30, 60);
    std::vector<int> last(all.b.size());
    const std::vector<solve_report> reports = all.gmres(with(1e-11, 60), [&](const iteration_event& e) {
        EXPECT_EQ(e.iteration, ++last[static_cast<std::size_t>(e.system)]);
    });
    for (std::size_t k = 0; k < reports.size(); ++k) EXPECT_EQ(last[k], reports[k].iterations) << k;
}

TEST(Together, AllocatesNothingWithoutHistory) {
    fgmres_options options = with(1e-11, 6);
    options.keep_history = false;
    auto all = mixed(30, 6);
    const auto systems = all.systems();
    std::vector<solve_report> reports(systems.size());
    const auto solve = [&] { gmres_together<vector>(all.space, all.apply(), systems, reports, options); };
    solve();

    EXPECT_EQ(allocations_in(solve), 0U);
    EXPECT_TRUE(reports[0].converged());
}

TEST(Together, RefusesWhatItCannotSolve) {
    auto all = mixed(10, 5);
    const auto systems = all.systems();
    const auto refused = [&](std::span<const one_system<vector>> some, std::size_t count) {
        std::vector<solve_report> reports(count);
        return refusal([&] { gmres_together<vector>(all.space, all.apply(), some, reports); });
    };
    const std::vector<one_system<vector>> many(17, systems[0]);
    EXPECT_EQ(refused(many, 17), "gmres_together: 17 systems and 17 reports; there must be one for each of at most 16");
    EXPECT_EQ(refused(systems, 2), "gmres_together: 7 systems and 2 reports; there must be one for each of at most 16");
    EXPECT_EQ(refused({}, 0), "accepted");

    workspace shorter(all.space, 3, false);
    auto unequal = systems;
    unequal[1].work = &shorter;
    EXPECT_EQ(refused(unequal, 7), "gmres_together: workspaces for restart lengths of 5 and 3; must be equal");
    std::vector<solve_report> reports(2);
    EXPECT_EQ(refusal([&] {
                  fgmres_together<vector>(all.space, all.apply(), all.scaling(),
                                          std::span<const one_system<vector>>(unequal).first(2), reports);
              }),
              "fgmres_together: a workspace was made with flexible = false, for gmres() only");
}

} // namespace
