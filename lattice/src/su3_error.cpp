// SPDX-License-Identifier: Apache-2.0
#include <halocline/lattice/su3_error.hpp>

#include "link_matrix.hpp"

#include <cmath>
#include <limits>

namespace halocline::lattice {

double su3_error(const double* u) {
    double largest = 0;
    const auto add = [&](double error) {
        if (!(error <= largest)) largest = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
    };
    for (int i = 0; i < 3; ++i)
        for (int j = i; j < 3; ++j) {
            std::complex<double> product = i == j ? -1 : 0;
            for (int k = 0; k < 3; ++k) product += element(u, i, k) * std::conj(element(u, j, k));
            add(std::abs(product));
        }
    for (int c = 0; c < 3; ++c) add(std::abs(element(u, 2, c) - third_row(u, c)));
    return largest;
}

} // namespace halocline::lattice
