// SPDX-License-Identifier: Apache-2.0
#include <halocline/dirac/su3.hpp>

#include <cmath>

namespace halocline::dirac {

su3 reunitarise(const su3& a) {
    su3 u = a;
    const auto normalise = [&](int row) {
        double norm2 = 0;
        for (int j = 0; j < 3; ++j) norm2 += std::norm(u[3 * row + j]);
        const double scale = 1 / std::sqrt(norm2);
        for (int j = 0; j < 3; ++j) u[3 * row + j] *= scale;
    };
    normalise(0);
    std::complex<double> overlap = 0;
    for (int j = 0; j < 3; ++j) overlap += conj_times(u[j], u[3 + j]);
    for (int j = 0; j < 3; ++j) u[3 + j] -= times(overlap, u[j]);
    normalise(1);
    for (int j = 0; j < 3; ++j) { // third row = conj(first x second)
        const int k = (j + 1) % 3, l = (j + 2) % 3;
        u[6 + j] = std::conj(times(u[k], u[3 + l]) - times(u[l], u[3 + k]));
    }
    return u;
}

} // namespace halocline::dirac
