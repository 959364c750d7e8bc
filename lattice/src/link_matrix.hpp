// SPDX-License-Identifier: Apache-2.0
// A link as stored: 3 x 3 complex numbers, row by row.
#pragma once

#include <complex>

namespace halocline::lattice {

inline std::complex<double> element(const double* u, int row, int column) {
    return {u[2 * (3 * row + column)], u[2 * (3 * row + column) + 1]};
}

/// Element c of the third row of an SU(3) matrix: conj(row1 x row2).
inline std::complex<double> third_row(const double* u, int c) {
    const int a = (c + 1) % 3, b = (c + 2) % 3;
    return std::conj(element(u, 0, a) * element(u, 1, b) - element(u, 0, b) * element(u, 1, a));
}

} // namespace halocline::lattice
