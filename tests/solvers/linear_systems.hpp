// SPDX-License-Identifier: Apache-2.0
// Small dense systems, and their solutions by LU.
#pragma once

#include "dense_space.hpp"

#include <halocline/solvers/fgmres.hpp>

#include <cmath>

namespace halocline_test {

using workspace = halocline::solvers::fgmres_workspace<vector>;

/// ||x - y|| / ||y||.
inline double distance(const vector& x, const Eigen::VectorXcd& y) {
    return (Eigen::Map<const Eigen::VectorXcd>(x.data(), y.size()) - y).norm() / y.norm();
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

} // namespace halocline_test
