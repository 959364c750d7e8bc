// SPDX-License-Identifier: Apache-2.0
// How far links, as stored, are from SU(3).
#pragma once

namespace halocline::lattice {

/// How far a link is from SU(3): the largest |element| of U U^dagger - 1 and of row 3 - (row 1 x row 2)^*, which fixes
/// the sign of the determinant; infinite if U holds a NaN.
/// Shape: link_components reals, row by row.
[[nodiscard]] double su3_error(const double* u);

} // namespace halocline::lattice
