// SPDX-License-Identifier: Apache-2.0
// Small dense systems A x = b, solved by the solvers and by LU.
#pragma once

#include "dense_space.hpp"

#include <halocline/solvers/fgmres.hpp>

#include <cmath>
#include <utility>

namespace halocline_test {

using workspace = halocline::solvers::fgmres_workspace<vector>;

/// ||x - y|| / ||y||.
inline double distance(const vector& x, const Eigen::VectorXcd& y) {
    return (Eigen::Map<const Eigen::VectorXcd>(x.data(), y.size()) - y).norm() / y.norm();
}
/// <a, b>, linear in b.
inline complex product(const vector& a, const vector& b) {
    complex sum = 0;
    for (std::size_t k = 0; k < a.size(); ++k) sum += std::conj(a[k]) * b[k];
    return sum;
}
inline Eigen::VectorXcd dense_solution(const matrix& a, const vector& b) {
    return a.partialPivLu().solve(Eigen::Map<const Eigen::VectorXcd>(b.data(), a.rows()));
}
/// A well-conditioned matrix: identity plus a small random one.
inline matrix friendly_matrix(std::mt19937_64& g, int n, double strength = 0.5) {
    return matrix::Identity(n, n) + strength / std::sqrt(2.0 * n) * random_matrix(g, n);
}
inline halocline::solvers::fgmres_options with(double tolerance, int restart_length, int max_iterations = 1000) {
    halocline::solvers::fgmres_options o;
    o.tolerance = tolerance;
    o.restart_length = restart_length;
    o.max_iterations = max_iterations;
    return o;
}

/// A x = b and the space that it lives in; x is 0 at first.
struct linear_system {
    matrix a;
    vector b;
    dense_space space{static_cast<int>(a.rows())};
    vector x = space.make();

    [[nodiscard]] dense_operator apply() { return {&space, &a}; }
    [[nodiscard]] double residual() const { return true_residual(a, x, b); }
    [[nodiscard]] double distance_from_lu() const { return distance(x, dense_solution(a, b)); }

    template <class Callback = halocline::solvers::silent>
    halocline::solvers::solve_report gmres(const halocline::solvers::fgmres_options& o, Callback&& callback = {}) {
        workspace work(space, o.restart_length, false);
        return halocline::solvers::gmres(space, apply(), b, x, work, o, callback);
    }
    template <class Preconditioner, class Callback = halocline::solvers::silent>
    halocline::solvers::solve_report fgmres(Preconditioner&& m, const halocline::solvers::fgmres_options& o,
                                            Callback&& callback = {}) {
        workspace work(space, o.restart_length);
        return halocline::solvers::fgmres(space, apply(), m, b, x, work, o, callback);
    }
};
inline linear_system random_system(std::mt19937_64& g, int n) {
    matrix a = random_matrix(g, n);
    return {std::move(a), random_vector(g, n)};
}
inline linear_system friendly_system(std::mt19937_64& g, int n, double strength = 0.5) {
    matrix a = friendly_matrix(g, n, strength);
    return {std::move(a), random_vector(g, n)};
}

} // namespace halocline_test
