// SPDX-License-Identifier: Apache-2.0
// The site-local term of one site, for clover_term() and for the kernels' form of it.
#pragma once

#include <halocline/dirac/clover_term.hpp>
#include <halocline/dirac/padded_links.hpp>
#include <halocline/dirac/wilson_parameters.hpp>

#include <array>
#include <complex>

namespace halocline::dirac {

/// (4 + m0) + clover at a site of the local box: two 6x6 matrices, as in clover_term().
/// Pre: `u` are links with_boundaries().
std::array<std::complex<double>, clover_components / 2>
clover_of_site(const padded_links& u, const lattice::coordinate& x, const wilson_parameters& p);

} // namespace halocline::dirac
