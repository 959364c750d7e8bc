// SPDX-License-Identifier: Apache-2.0
#include <halocline/solvers/hessenberg.hpp>

#include <Eigen/Core>
#include <Eigen/Jacobi>

#include <algorithm>
#include <cmath>

namespace halocline::solvers {
namespace {

using vector_view = Eigen::Map<Eigen::VectorXcd>;

} // namespace

hessenberg_least_squares::hessenberg_least_squares(int columns)
    : r_(static_cast<std::size_t>(columns) * static_cast<std::size_t>(columns + 1)),
      g_(static_cast<std::size_t>(columns) + 1), y_(static_cast<std::size_t>(columns)),
      rotations_(static_cast<std::size_t>(columns)) {}

void hessenberg_least_squares::reset(double beta) noexcept {
    columns_ = 0;
    g_[0] = beta;
}

double hessenberg_least_squares::append(std::span<const complex> h, double next) noexcept {
    const int j = columns_++;
    vector_view r(column(j), j + 2), g(g_.data(), j + 2);
    std::copy_n(h.data(), j + 1, r.data());
    r[j + 1] = next;
    last_norm_ = r.norm();
    const auto rotate = [this](vector_view& v, int i) {
        const rotation& of_i = rotations_[static_cast<std::size_t>(i)];
        v.applyOnTheLeft(i, i + 1, Eigen::JacobiRotation<complex>(of_i.c, of_i.s).adjoint());
    };
    // r_j = G_{j-1} ... G_0 h_j
    for (int i = 0; i < j; ++i) rotate(r, i);
    // G_j annihilates h_{j+1,j}
    Eigen::JacobiRotation<complex> last;
    last.makeGivens(r[j], r[j + 1]);
    rotations_[static_cast<std::size_t>(j)] = {last.c(), last.s()};
    rotate(r, j);
    // g = G_j g
    g[j + 1] = 0;
    rotate(g, j);
    return std::abs(g[j + 1]);
}

std::span<const complex> hessenberg_least_squares::solve(double epsilon) noexcept {
    int n = columns_;
    if (n > 0 && std::abs(column(n - 1)[n - 1]) <= 16 * epsilon * last_norm_) --n;
    for (int i = n - 1; i >= 0; --i) {
        // y_i = (g_i - sum_{k>i} r_ik y_k) / r_ii
        complex s = g_[static_cast<std::size_t>(i)];
        for (int k = i + 1; k < n; ++k) s -= column(k)[i] * y_[static_cast<std::size_t>(k)];
        y_[static_cast<std::size_t>(i)] = s / column(i)[i];
    }
    return {y_.data(), static_cast<std::size_t>(n)};
}

} // namespace halocline::solvers
