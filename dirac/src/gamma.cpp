// SPDX-License-Identifier: Apache-2.0
#include <halocline/dirac/gamma.hpp>

#include "wilson_clover_kernels.hpp"

namespace halocline::dirac {
namespace {

constexpr std::complex<double> i{0, 1};
constexpr std::array<std::array<gamma_row, 4>, 4> gamma{{
    {{{2, -i}, {3, i}, {0, i}, {1, -i}}},       // X
    {{{3, -1.}, {2, 1.}, {1, 1.}, {0, -1.}}},   // Y
    {{{3, -i}, {2, -i}, {1, i}, {0, i}}},       // Z
    {{{2, -1.}, {3, -1.}, {0, -1.}, {1, -1.}}}, // T
}};

constexpr bool the_kernels_have_the_same() {
    constexpr std::array<std::complex<double>, 4> powers_of_i{1., i, -1., -i};
    for (int mu = 0; mu < lattice::dimensions; ++mu)
        for (int row = 0; row < 4; ++row) {
            const kernels::gamma_entry entry = kernels::gamma[mu][row];
            if (gamma[mu][row].column != entry.column || gamma[mu][row].value != powers_of_i[entry.power]) return false;
        }
    return true;
}
static_assert(the_kernels_have_the_same());

} // namespace

const std::array<std::array<gamma_row, 4>, 4>& gamma_matrices() { return gamma; }

} // namespace halocline::dirac
