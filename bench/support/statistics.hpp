// SPDX-License-Identifier: Apache-2.0
// Statistics that are printed about many timings.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace halocline::bench {

/// The value below which the share q of all lies; 0 for no values.
inline double quantile(std::vector<double> values, double q) {
    if (values.empty()) return 0;
    const auto n = static_cast<std::ptrdiff_t>(q * static_cast<double>(values.size() - 1) + 0.5);
    std::nth_element(values.begin(), values.begin() + n, values.end());
    return values[n];
}
/// The middle value, of an even number of values the mean of the middle two; 0 for no values.
inline double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    if (values.size() % 2 == 1) return *middle;
    return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

} // namespace halocline::bench
