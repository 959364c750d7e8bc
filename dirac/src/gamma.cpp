// SPDX-License-Identifier: Apache-2.0
// The gamma matrices of openQCD and DD-HMC; gamma_5 = gamma_T gamma_Z gamma_Y gamma_X = diag(1, 1, -1, -1).
#include <halocline/dirac/reference.hpp>

namespace halocline::dirac {

const std::array<std::array<gamma_row, 4>, 4>& gamma_matrices() {
    static constexpr std::complex<double> i{0, 1};
    static constexpr std::array<std::array<gamma_row, 4>, 4> gamma{{
        {{{2, -i}, {3, i}, {0, i}, {1, -i}}},       // X
        {{{3, -1.}, {2, 1.}, {1, 1.}, {0, -1.}}},   // Y
        {{{3, -i}, {2, -i}, {1, i}, {0, i}}},       // Z
        {{{2, -1.}, {3, -1.}, {0, -1.}, {1, -1.}}}, // T
    }};
    return gamma;
}

} // namespace halocline::dirac
