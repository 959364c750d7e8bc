// SPDX-License-Identifier: Apache-2.0
#include "dense_space.hpp"

#include <halocline/solvers/hessenberg.hpp>

#include <gtest/gtest.h>

#include <span>

namespace {

using namespace halocline::solvers;
using namespace halocline_test;

/// Columns of (columns + 1) x columns, zero below the first subdiagonal, which is real and not negative.
matrix random_hessenberg(std::mt19937_64& g, int columns) {
    matrix h = random_matrix(g, columns + 1).leftCols(columns);
    for (int j = 0; j < columns; ++j) {
        h(j + 1, j) = std::abs(h(j + 1, j));
        h.col(j).tail(columns - j - 1).setZero();
    }
    return h;
}
double append(hessenberg_least_squares& fit, const matrix& h, int j) {
    return fit.append(std::span<const complex>(h.col(j).data(), j + 1), h(j + 1, j).real());
}

TEST(HessenbergLeastSquares, AgreesWithADenseQrAfterEachColumn) {
    std::mt19937_64 g(1);
    const int n = 12;
    const double beta = 3;
    hessenberg_least_squares fit(n);
    ASSERT_EQ(fit.capacity(), n);
    for (int round = 0; round < 2; ++round) { // the second one forgets the first
        const matrix h = random_hessenberg(g, n);
        fit.reset(beta);
        for (int j = 0; j < n; ++j) {
            const double residual = append(fit, h, j);
            const std::span<const complex> y = fit.solve(2e-16);

            const matrix columns = h.topLeftCorner(j + 2, j + 1);
            Eigen::VectorXcd rhs = Eigen::VectorXcd::Zero(j + 2);
            rhs[0] = beta;
            const Eigen::VectorXcd expected = columns.householderQr().solve(rhs);
            ASSERT_EQ(y.size(), static_cast<std::size_t>(j + 1));
            EXPECT_LE((Eigen::Map<const Eigen::VectorXcd>(y.data(), j + 1) - expected).norm(), 1e-12 * expected.norm());
            EXPECT_NEAR(residual, (rhs - columns * expected).norm(), 1e-13 * beta);
        }
    }
}

TEST(HessenbergLeastSquares, IsExactForColumnsWithZeros) {
    hessenberg_least_squares fit(2);
    fit.reset(2);
    const complex first[] = {0};
    const complex second[] = {{0, 4}, 3};

    const double after_first = fit.append(first, 1); // the column (0, 1): of no help with e_1
    const double after_second = fit.append(second, 0);
    const std::span<const complex> y = fit.solve(2e-16);

    EXPECT_EQ(after_first, 2);
    EXPECT_EQ(after_second, 0); // (0, 4i; 1, 3) y = (2, 0)
    ASSERT_EQ(y.size(), 2U);
    EXPECT_EQ(y[0], complex(0, 1.5));
    EXPECT_EQ(y[1], complex(0, -0.5));
}

TEST(HessenbergLeastSquares, LeavesOutALastPivotThatVanishes) {
    for (const double pivot : {0.0, 1e-18}) {
        hessenberg_least_squares fit(2);
        fit.reset(1);
        const complex first[] = {2};
        const complex second[] = {5, pivot};

        static_cast<void>(fit.append(first, 0));
        static_cast<void>(fit.append(second, 0));
        const std::span<const complex> y = fit.solve(2e-16);

        ASSERT_EQ(y.size(), 1U) << pivot;
        EXPECT_EQ(y[0], 0.5) << pivot;
    }
}

TEST(HessenbergLeastSquares, IsExactFarFromOne) {
    for (const double size : {0x1p-400, 0x1p400}) {
        hessenberg_least_squares fit(1);
        fit.reset(size);
        const complex column[] = {{0, 3 * size}};

        const double residual = fit.append(column, 4 * size);

        EXPECT_DOUBLE_EQ(residual, 0.8 * size); // beta |next| / ||column||
        const std::span<const complex> y = fit.solve(2e-16);
        ASSERT_EQ(y.size(), 1U);
        EXPECT_NEAR(std::abs(y[0] - complex(0, -0.12)), 0, 1e-16); // conj(h) beta / ||column||^2
    }
}

} // namespace
