// SPDX-License-Identifier: Apache-2.0
// A vector space over std::vector with faults on demand: it counts global sums and can spoil the n-th operation.
#pragma once

#include <halocline/solvers/concepts.hpp>

#include <Eigen/Dense>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace halocline_test {

using halocline::comm::status;
using halocline::solvers::complex;
using vector = std::vector<complex>;
using matrix = Eigen::MatrixXcd;

struct dense_space {
    static constexpr double epsilon = std::numeric_limits<double>::epsilon();
    static constexpr double least = std::numeric_limits<double>::min();
    int n = 0;
    int sums = 0;
    int operations = 0; // that write numbers
    int spoil = -1;     // this operation leaves a NaN
    int fail_sum = -1;  // this global sum finds that its peer is dead
    bool spoiled = false;
    const vector* solution = nullptr; // x of the solve
    bool spoiled_solution = false;    // the NaN went into x, which no recurrence reads
    double poison = std::numeric_limits<double>::quiet_NaN();

    void wrote(vector& y) {
        if (operations++ == spoil) {
            y[y.size() / 2] = poison;
            spoiled = true;
            spoiled_solution = &y == solution;
        }
    }
    status summed() { return sums++ == fail_sum ? status::peer_died : status::ok; }

    vector make() const { return vector(n); }
    void set_zero(vector& y) { std::fill(y.begin(), y.end(), complex{}); }
    void copy(vector& y, const vector& x) {
        std::copy(x.begin(), x.end(), y.begin());
        wrote(y);
    }
    void scale(vector& y, double alpha) {
        for (complex& value : y) value *= alpha;
        wrote(y);
    }
    void axpy(vector& y, complex a, const vector& x) {
        for (int k = 0; k < n; ++k) y[k] += a * x[k];
        wrote(y);
    }
    void combine(vector& y, double alpha, std::span<const complex> c, std::span<const vector> v) {
        for (complex& value : y) value *= alpha;
        for (std::size_t i = 0; i < v.size(); ++i)
            for (int k = 0; k < n; ++k) y[k] += c[i] * v[i][k];
        wrote(y);
    }
    status multi_dot(std::span<const vector> v, const vector& x, std::span<complex> out) {
        for (std::size_t i = 0; i < v.size(); ++i) {
            out[i] = 0;
            for (int k = 0; k < n; ++k) out[i] += std::conj(v[i][k]) * x[k];
        }
        if (operations++ == spoil) {
            out[0] = poison;
            spoiled = true;
        }
        return summed();
    }
    status norm(const vector& x, double& result) {
        result = Eigen::Map<const Eigen::VectorXcd>(x.data(), n).stableNorm();
        if (operations++ == spoil) {
            result = poison;
            spoiled = true;
        }
        return summed();
    }
};

/// y = A x, which can be spoiled like any other operation.
struct dense_operator {
    dense_space* space;
    const matrix* a;
    status operator()(vector& y, const vector& x) const {
        Eigen::Map<Eigen::VectorXcd>(y.data(), space->n).noalias() =
            a->lazyProduct(Eigen::Map<const Eigen::VectorXcd>(x.data(), space->n));
        space->wrote(y);
        return status::ok;
    }
};

inline matrix random_matrix(std::mt19937_64& g, int n) {
    std::normal_distribution<double> normal;
    return matrix::NullaryExpr(n, n, [&] { return complex{normal(g), normal(g)}; });
}
inline vector random_vector(std::mt19937_64& g, int n) {
    std::normal_distribution<double> normal;
    vector x(n);
    for (complex& value : x) value = {normal(g), normal(g)};
    return x;
}
/// ||b - A x|| / ||b|| in extended precision, independent of everything a solver uses.
inline double true_residual(const matrix& a, const vector& x, const vector& b) {
    long double rr = 0, bb = 0;
    for (int i = 0; i < a.rows(); ++i) {
        std::complex<long double> r(b[i].real(), b[i].imag());
        bb += std::norm(r);
        for (int k = 0; k < a.cols(); ++k)
            r -= std::complex<long double>(a(i, k).real(), a(i, k).imag()) *
                 std::complex<long double>(x[k].real(), x[k].imag());
        rr += std::norm(r);
    }
    return static_cast<double>(std::sqrt(rr / bb));
}

} // namespace halocline_test
