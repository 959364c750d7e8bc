// SPDX-License-Identifier: Apache-2.0
// Mean of a Markov chain's measurements with the error from binning. Ref: [FlyvbjergPetersen1989].
#pragma once

#include <span>

namespace halocline::gauge {

struct binned_mean {
    double mean = 0;
    double error = 0; ///< NaN for fewer than two values
    int bin = 1;      ///< values per bin at which the error was largest
};

/// The error is the largest over bin sizes 1, 2, 4, … that leave at least 16 bins (or no binning, if there are fewer
/// than 32 values): bins longer than the autocorrelation are independent, shorter ones show too small an error.
binned_mean mean_with_binning(std::span<const double> values);

} // namespace halocline::gauge
