// SPDX-License-Identifier: Apache-2.0
// 3x3 complex matrices, row-major, acting on column colour vectors: as much of SU(3) as set-up code and references
// need. Products are written in real arithmetic: std::complex's operator* checks for NaN, which makes it several times
// slower.
#pragma once

#include <array>
#include <complex>

namespace halocline::dirac {

/// A row-major 3x3 matrix acting on column colour vectors.
using su3 = std::array<std::complex<double>, 9>;

inline constexpr su3 su3_identity{1, 0, 0, 0, 1, 0, 0, 0, 1};

/// a b, without the check for NaN.
inline std::complex<double> times(std::complex<double> a, std::complex<double> b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
/// conj(a) b.
inline std::complex<double> conj_times(std::complex<double> a, std::complex<double> b) {
    return {a.real() * b.real() + a.imag() * b.imag(), a.real() * b.imag() - a.imag() * b.real()};
}

/// a b.
inline su3 multiply(const su3& a, const su3& b) {
    su3 c;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            c[3 * i + j] = times(a[3 * i], b[j]) + times(a[3 * i + 1], b[3 + j]) + times(a[3 * i + 2], b[6 + j]);
    return c;
}
/// a b^dagger.
inline su3 multiply_adjoint(const su3& a, const su3& b) {
    su3 c;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            c[3 * i + j] = conj_times(b[3 * j], a[3 * i]) + conj_times(b[3 * j + 1], a[3 * i + 1]) +
                           conj_times(b[3 * j + 2], a[3 * i + 2]);
    return c;
}
/// a^dagger b.
inline su3 adjoint_multiply(const su3& a, const su3& b) {
    su3 c;
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j)
            c[3 * i + j] = conj_times(a[i], b[j]) + conj_times(a[3 + i], b[3 + j]) + conj_times(a[6 + i], b[6 + j]);
    return c;
}
/// a^dagger.
inline su3 adjoint(const su3& a) {
    return {std::conj(a[0]), std::conj(a[3]), std::conj(a[6]), std::conj(a[1]), std::conj(a[4]),
            std::conj(a[7]), std::conj(a[2]), std::conj(a[5]), std::conj(a[8])};
}
/// Re tr(a b^dagger).
inline double real_trace_adjoint(const su3& a, const su3& b) {
    double sum = 0;
    for (int i = 0; i < 9; ++i) sum += a[i].real() * b[i].real() + a[i].imag() * b[i].imag();
    return sum;
}

/// The SU(3) matrix with the first two rows of `a` orthonormalised and the third their conjugate cross product.
/// Pre: the first two rows are linearly independent.
su3 reunitarise(const su3& a);

} // namespace halocline::dirac
