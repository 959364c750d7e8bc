// SPDX-License-Identifier: Apache-2.0
#include "dense_space.hpp"

#include <halocline/solvers/hessenberg.hpp>

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <vector>

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
    for (const double size : {1.0, 1e-20})
        for (const double pivot : {0.0, 1e-18}) {
            hessenberg_least_squares fit(2);
            fit.reset(1);
            const complex first[] = {2};
            const complex second[] = {5 * size, pivot * size};

            static_cast<void>(fit.append(first, 0));
            static_cast<void>(fit.append(second, 0));
            const std::span<const complex> y = fit.solve(2e-16);

            ASSERT_EQ(y.size(), 1U) << size << " " << pivot;
            EXPECT_EQ(y[0], 0.5) << size << " " << pivot;
        }
}

// A preconditioner may make the vectors of a solve of very different sizes.
TEST(HessenbergLeastSquares, KeepsALastColumnThatIsSmallBesideTheOthers) {
    for (const double next : {1.0, 0.0}) {
        std::array<std::vector<complex>, 2> solutions;
        for (const double size : {1.0, 0x1p-70}) {
            hessenberg_least_squares fit(2);
            fit.reset(1);
            const complex first[] = {3};
            const complex second[] = {size, complex(0, 2 * size)};

            static_cast<void>(fit.append(first, 1));
            static_cast<void>(fit.append(second, next * size));
            const std::span<const complex> y = fit.solve(2e-16);

            ASSERT_EQ(y.size(), 2U) << size << " " << next;
            solutions[size == 1 ? 0 : 1] = {y[0], y[1] * size};
        }
        for (std::size_t i = 0; i < 2; ++i) EXPECT_NEAR(std::abs(solutions[1][i] - solutions[0][i]), 0, 1e-15) << next;
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
