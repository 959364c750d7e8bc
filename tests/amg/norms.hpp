// SPDX-License-Identifier: Apache-2.0
// Norms and distances of this rank's part of a field.
#pragma once

#include <halocline/lattice/field.hpp>

#include <cmath>

namespace halocline_test {

/// ||v||, including padding.
template <class T>
double norm(const halocline::lattice::field<T>& v) {
    double sum = 0;
    for (T x : v.values()) sum += static_cast<double>(x) * static_cast<double>(x);
    return std::sqrt(sum);
}

/// ||a - b|| / ||b||.
template <class T>
double distance(const halocline::lattice::field<T>& a, const halocline::lattice::field<T>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.values().size(); ++i) {
        const double d = static_cast<double>(a.values()[i]) - static_cast<double>(b.values()[i]);
        sum += d * d;
    }
    return std::sqrt(sum) / norm(b);
}

} // namespace halocline_test
