// SPDX-License-Identifier: Apache-2.0
// The small dense part of GMRES: min_y || beta e_1 - H y ||, column by column, with Givens rotations.
// Ref: [Saad2003] sec. 6.5.3.
#pragma once

#include <halocline/solvers/concepts.hpp>

#include <cstddef>
#include <span>
#include <vector>

namespace halocline::solvers {

/// QR of a growing Hessenberg matrix. Allocates only in the constructor.
class hessenberg_least_squares {
  public:
    /// For at most `columns` columns.
    explicit hessenberg_least_squares(int columns);

    /// Forgets all columns; the right-hand side is beta e_1.
    void reset(double beta) noexcept;
    /// Appends the next column j: h_0j ... h_jj, the first j + 1 elements of h, and the real h_{j+1,j} = next >= 0.
    /// Returns the least-squares residual |g_{j+1}|.  Pre: fewer than capacity() columns.  Cost: O(j).
    double append(std::span<const complex> h, double next) noexcept;
    /// y = R^{-1} g, valid until the next call. A pivot that vanishes to `epsilon`, beside the norm of its own column
    /// of H (it can only be the last one, after a breakdown), is left out, and y has one element less than there are
    /// columns. The norms of other columns don't count: a preconditioner may give its vectors any size.
    /// Cost: O(columns^2).
    [[nodiscard]] std::span<const complex> solve(double epsilon) noexcept;

    [[nodiscard]] int capacity() const noexcept { return static_cast<int>(rotations_.size()); }

  private:
    struct rotation {
        complex c, s; ///< as Eigen::JacobiRotation has them
    };
    [[nodiscard]] std::size_t rows() const noexcept { return rotations_.size() + 1; }
    [[nodiscard]] complex* column(int j) noexcept { return r_.data() + static_cast<std::size_t>(j) * rows(); }

    std::vector<complex> r_; ///< column by column
    std::vector<complex> g_, y_;
    std::vector<rotation> rotations_;
    int columns_ = 0;
    double last_norm_ = 0; ///< of H's last column: the scale for recognising a vanishing pivot
};

} // namespace halocline::solvers
