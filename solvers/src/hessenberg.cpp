// SPDX-License-Identifier: Apache-2.0
#include <halocline/solvers/hessenberg.hpp>

#include <algorithm>
#include <cmath>

namespace halocline::solvers {

hessenberg_least_squares::hessenberg_least_squares(int columns)
    : r_(static_cast<std::size_t>(columns) * static_cast<std::size_t>(columns + 1) / 2),
      g_(static_cast<std::size_t>(columns) + 1), y_(static_cast<std::size_t>(columns)),
      rotations_(static_cast<std::size_t>(columns)) {}

void hessenberg_least_squares::reset(double beta) noexcept {
    columns_ = 0;
    largest_ = 0;
    g_[0] = beta;
}

void hessenberg_least_squares::rotate(const rotation& g, complex& upper, complex& lower) noexcept {
    const complex above = upper;
    upper = g.c * above + g.s * lower;
    lower = g.c * lower - std::conj(g.s) * above;
}

/// The rotation that takes (upper, lower) to (r, 0); upper = r.
hessenberg_least_squares::rotation hessenberg_least_squares::annihilate(complex& upper, double lower) noexcept {
    if (lower == 0) return {1, 0};
    const double size = std::abs(upper), length = std::hypot(size, lower);
    const complex phase = size == 0 ? complex(1) : upper / size;
    upper = phase * length;
    return {size / length, phase * (lower / length)};
}

double hessenberg_least_squares::append(std::span<const complex> h, double next) noexcept {
    const int j = columns_++;
    complex* const r = column(j);
    std::copy_n(h.data(), j + 1, r);
    double norm2 = next * next;
    for (int i = 0; i <= j; ++i) norm2 += std::norm(r[i]);
    largest_ = std::max(largest_, std::sqrt(norm2));
    // r_j = G_{j-1} ... G_0 h_j
    for (int i = 0; i < j; ++i) rotate(rotations_[i], r[i], r[i + 1]);
    // G_j annihilates h_{j+1,j}
    rotations_[j] = annihilate(r[j], next);
    // g = G_j g
    g_[j + 1] = 0;
    rotate(rotations_[j], g_[j], g_[j + 1]);
    return std::abs(g_[j + 1]);
}

std::span<const complex> hessenberg_least_squares::solve(double epsilon) noexcept {
    int n = columns_;
    if (n > 0 && std::abs(column(n - 1)[n - 1]) <= 16 * epsilon * largest_) --n;
    std::copy_n(g_.data(), n, y_.data());
    for (int i = n - 1; i >= 0; --i) {
        // y_i = (g_i - sum_{k>i} r_ik y_k) / r_ii, the sum one column at a time
        y_[i] /= column(i)[i];
        for (int k = 0; k < i; ++k) y_[k] -= column(i)[k] * y_[i];
    }
    return {y_.data(), static_cast<std::size_t>(n)};
}

} // namespace halocline::solvers
