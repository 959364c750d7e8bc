// SPDX-License-Identifier: Apache-2.0
// The largest error of many, when one of them may be no number at all.
#pragma once

#include <cmath>
#include <limits>

namespace halocline_test {

/// The larger of two errors; infinity, which stays, if one is NaN: std::max and std::fmax would leave that out.
inline double worse(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::infinity();
    return a < b ? b : a;
}

} // namespace halocline_test
