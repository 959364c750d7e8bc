// SPDX-License-Identifier: Apache-2.0
// The gamma matrices of openQCD and DD-HMC; gamma_5 = gamma_T gamma_Z gamma_Y gamma_X = diag(1, 1, -1, -1).
#pragma once

#include <array>
#include <complex>

namespace halocline::dirac {

/// A row of gamma_mu, which has one non-zero entry in each.
struct gamma_row {
    int column;
    std::complex<double> value;
};

/// gamma_mu by [mu][row]; mu = 0..3 is x, y, z, t.
const std::array<std::array<gamma_row, 4>, 4>& gamma_matrices();

} // namespace halocline::dirac
