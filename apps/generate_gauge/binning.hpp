// SPDX-License-Identifier: Apache-2.0
// Mean of a Markov chain's measurements with the error from binning. Ref: [FlyvbjergPetersen1989].
#pragma once

#include <span>

namespace halocline::gauge {

struct binned_mean {
    double mean = 0;
    double error = 0; ///< NaN for fewer than 32 values
    int bin = 1;      ///< values per bin at which the error was largest
};

/// The error is the largest over bin sizes 1, 2, 4, … that leave at least 16 bins: bins longer than the autocorrelation
/// are independent, shorter ones show too small an error. Fewer than 32 values allow no such bins but those of one
/// value, which know nothing of the autocorrelation: the error is unknown.
binned_mean mean_with_binning(std::span<const double> values);

} // namespace halocline::gauge
