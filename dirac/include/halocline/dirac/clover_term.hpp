// SPDX-License-Identifier: Apache-2.0
// The site-local part of the Wilson-clover operator, written like its formula. Set-up data of the fast operator and of
// the reference.
#pragma once

#include <halocline/dirac/padded_links.hpp>
#include <halocline/dirac/wilson_parameters.hpp>
#include <halocline/lattice/field.hpp>

namespace halocline::dirac {

/// Reals per site of the site-local part: 2 Hermitian 6x6 matrices.
inline constexpr int clover_components = 144;

/// Diagonal (site-local) part of D, (4 + m0) + clover, as two Hermitian 6x6 matrices per site (spins 0,1 and 2,3; row =
/// 3 * (spin % 2) + colour), row-major complex: 2 x 36 complex = 144 reals per site, lexicographic.
lattice::field<double> clover_term(const padded_links& links, const wilson_parameters& p);

} // namespace halocline::dirac
