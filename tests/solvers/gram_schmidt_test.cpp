// SPDX-License-Identifier: Apache-2.0
#include "linear_systems.hpp"

#include <halocline/solvers/gram_schmidt.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace {

using namespace halocline::solvers;
using namespace halocline_test;

constexpr int n = 20;
constexpr std::size_t basis_size = 4;
constexpr double twice_is_enough = 0.7071;

/// An orthonormal basis and, behind it, the vector w that is to join it.
struct arnoldi_step {
    dense_space space{n};
    std::vector<vector> vectors;
    vector w;
    status communication = status::ok;
    std::vector<complex> h = std::vector<complex>(basis_size + 1), scratch = h;

    /// w = `along` times a sum of the basis + `beside` times a random vector orthogonal to it, of norm 1.
    arnoldi_step(double along, double beside) {
        std::mt19937_64 g(7);
        const matrix q = random_matrix(g, n).householderQr().householderQ();
        w = vector(n);
        for (std::size_t i = 0; i <= basis_size; ++i) {
            const complex share = i < basis_size ? along * complex(1, static_cast<double>(i)) : complex(beside);
            vectors.emplace_back(q.col(static_cast<Eigen::Index>(i)).data(),
                                 q.col(static_cast<Eigen::Index>(i)).data() + n);
            for (int k = 0; k < n; ++k) w[k] += share * vectors[i][k];
        }
        vectors.back() = w;
    }
    orthonormalised run(double eta) {
        orthonormalisation<vector> step{vectors, h, scratch};
        orthonormalisation<vector>* const one = &step;
        communication = orthonormalise(space, std::span(&one, 1), {.below = eta});
        return step.result;
    }
};

TEST(GramSchmidt, TakesOneSumUnlessDirectionsCancel) {
    arnoldi_step plain(0.1, 1), cancels(1, 1e-6);

    const orthonormalised once = plain.run(twice_is_enough), twice = cancels.run(twice_is_enough);

    EXPECT_FALSE(once.repeated);
    EXPECT_EQ(plain.space.sums, 1);
    EXPECT_TRUE(twice.repeated);
    EXPECT_EQ(cancels.space.sums, 2);
}

TEST(GramSchmidt, MakesAnOrthonormalVectorAndKeepsWhatItTookAway) {
    for (const double beside : {1.0, 1e-3, 1e-6, 1e-9}) {
        arnoldi_step step(1, beside);

        const orthonormalised result = step.run(twice_is_enough);

        EXPECT_EQ(step.communication, status::ok);
        EXPECT_TRUE(result.finite);
        EXPECT_NEAR(result.next, beside, 1e-14);
        const vector& last = step.vectors.back();
        EXPECT_NEAR(std::sqrt(product(last, last).real()), 1, 1e-14) << beside;
        vector again(n); // sum_i h_i v_i + next v_last
        for (std::size_t i = 0; i < basis_size; ++i) {
            EXPECT_LE(std::abs(product(step.vectors[i], last)), 1e-14) << beside;
            for (int k = 0; k < n; ++k) again[k] += step.h[i] * step.vectors[i][k];
        }
        for (int k = 0; k < n; ++k) EXPECT_LE(std::abs(again[k] + result.next * last[k] - step.w[k]), 1e-14) << beside;
    }
}

TEST(GramSchmidt, FindsNothingNewInTheSpanOfTheBasis) {
    arnoldi_step in_span(1, 0), zero(0, 0);

    const orthonormalised spanned = in_span.run(twice_is_enough), nothing = zero.run(twice_is_enough);

    EXPECT_EQ(spanned.next, 0);
    EXPECT_TRUE(spanned.repeated);
    EXPECT_TRUE(spanned.finite);
    EXPECT_EQ(nothing.next, 0);
    EXPECT_FALSE(nothing.repeated);
}

TEST(GramSchmidt, ReportsNumbersThatAreNotFiniteAndFailedSums) {
    arnoldi_step spoilt(1, 1e-6), dead(1, 1e-6);
    spoilt.vectors.back()[3] = std::numeric_limits<double>::infinity();
    dead.space.fail_sum = 1; // that of the second pass

    EXPECT_FALSE(spoilt.run(twice_is_enough).finite);
    (void)dead.run(twice_is_enough);
    EXPECT_EQ(dead.communication, status::peer_died);
}

} // namespace
