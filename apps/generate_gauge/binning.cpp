// SPDX-License-Identifier: Apache-2.0
#include "binning.hpp"

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace halocline::gauge {
namespace {

double mean_of(std::span<const double> values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Error of the mean of independent values: sqrt(sum (v - mean)^2 / (n (n - 1))).
double naive_error(std::span<const double> values) {
    const double mean = mean_of(values), n = static_cast<double>(values.size());
    double squares = 0;
    for (double v : values) squares += (v - mean) * (v - mean);
    return std::sqrt(squares / (n * (n - 1)));
}

} // namespace

binned_mean mean_with_binning(std::span<const double> values) {
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    constexpr std::size_t fewest_bins = 16; // of fewer, the spread says too little
    if (values.empty()) return {unknown, unknown, 1};
    if (values.size() < 2 * fewest_bins) return {mean_of(values), unknown, 1};

    binned_mean result{mean_of(values), naive_error(values), 1};
    std::vector<double> bins(values.begin(), values.end());
    for (int size = 2; bins.size() / 2 >= fewest_bins; size *= 2) {
        for (std::size_t i = 0; i < bins.size() / 2; ++i) bins[i] = (bins[2 * i] + bins[2 * i + 1]) / 2;
        bins.resize(bins.size() / 2);
        if (const double error = naive_error(bins); error > result.error) result.error = error, result.bin = size;
    }
    return result;
}

} // namespace halocline::gauge
