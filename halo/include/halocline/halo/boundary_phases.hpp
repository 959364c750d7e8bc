// SPDX-License-Identifier: Apache-2.0
// Phases of twisted boundaries: an option of stencils and of plans of shells.
#pragma once

#include <halocline/lattice/geometry.hpp>

#include <array>
#include <complex>

namespace halocline::halo {

/// What a field is multiplied by where it continues beyond the upper edge of the lattice, by dimension; beyond the
/// lower edge it is the conjugate. 1: periodic.
using boundary_phases = std::array<std::complex<double>, lattice::dimensions>;

} // namespace halocline::halo
