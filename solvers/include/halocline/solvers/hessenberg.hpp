// SPDX-License-Identifier: Apache-2.0
// The small dense part of GMRES: min_y || beta e_1 - H y ||, column by column, with Givens rotations.
// Ref: [Saad2003] sec. 6.5.3.
#pragma once

#include <halocline/solvers/concepts.hpp>

#include <Eigen/Jacobi>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace halocline::solvers {

/// QR of a growing Hessenberg matrix. Allocates only in the constructor.
class hessenberg_least_squares {
  public:
    explicit hessenberg_least_squares(int columns)
        : r_(columns + 1, columns), g_(columns + 1), y_(columns), rotations_(columns) {}

    /// Forgets all columns; the right-hand side is beta e_1.
    void reset(double beta) noexcept {
        columns_ = 0;
        largest_ = 0;
        g_[0] = beta;
    }

    /// Appends the next column j: h_0j ... h_jj and the real h_{j+1,j} >= 0.
    /// Returns the least-squares residual |g_{j+1}|.
    double append(std::span<const complex> h, double next) noexcept {
        const int j = columns_++;
        auto column = r_.col(j);
        std::copy_n(h.data(), j + 1, column.data());
        column[j + 1] = next;
        largest_ = std::max(largest_, column.head(j + 2).norm());
        // r_j = G_{j-1} ... G_0 h_j
        for (int i = 0; i < j; ++i) column.applyOnTheLeft(i, i + 1, rotations_[i].adjoint());
        // G_j annihilates h_{j+1,j}
        rotations_[j].makeGivens(column[j], column[j + 1]);
        column.applyOnTheLeft(j, j + 1, rotations_[j].adjoint());
        // g = G_j g
        g_[j + 1] = 0;
        g_.applyOnTheLeft(j, j + 1, rotations_[j].adjoint());
        return std::abs(g_[j + 1]);
    }

    /// y = R^{-1} g. A pivot that vanishes to `epsilon` (it can only be the last one, after a breakdown) is left out.
    [[nodiscard]] std::span<const complex> solve(double epsilon) noexcept {
        int n = columns_;
        if (n > 0 && std::abs(r_(n - 1, n - 1)) <= 16 * epsilon * largest_) --n;
        for (int i = n - 1; i >= 0; --i) {
            // y_i = (g_i - sum_{k>i} r_ik y_k) / r_ii
            complex s = g_[i];
            for (int k = i + 1; k < n; ++k) s -= r_(i, k) * y_[k];
            y_[i] = s / r_(i, i);
        }
        return {y_.data(), static_cast<std::size_t>(n)};
    }

    [[nodiscard]] int capacity() const noexcept { return static_cast<int>(r_.cols()); }

  private:
    Eigen::MatrixXcd r_;
    Eigen::VectorXcd g_, y_;
    std::vector<Eigen::JacobiRotation<complex>> rotations_;
    int columns_ = 0;
    double largest_ = 0; // largest column norm of H: the scale for recognising a vanishing pivot
};

} // namespace halocline::solvers
