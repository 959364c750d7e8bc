// SPDX-License-Identifier: Apache-2.0
// Parameters and conventions of the Wilson-clover operator; gamma matrices of openQCD / DD-HMC (gamma_matrices()).
// Links act on column colour vectors; spinor component 3 * spin + colour; boundary factors sit on the links that leave
// the last slice (with_boundaries()).
#pragma once

#include <halocline/lattice/geometry.hpp>

#include <array>

namespace halocline::dirac {

/// D = (4 + m0) - 1/2 sum_mu [ (1 - gamma_mu) U_mu(x) psi(x+mu) + (1 + gamma_mu) U_mu(x-mu)^dagger psi(x-mu) ]
///     - csw sum_{mu<nu} gamma_mu gamma_nu (Q_munu - Q_munu^dagger) / 16.
/// Directions are x, y, z, t = 0..3 as everywhere. Swapping mu and nu changes the signs of gamma_mu gamma_nu and of
/// Q - Q^dagger, so a term of the clover sum is that of a plane, whichever way it is taken.
struct wilson_parameters {
    double m0 = -0.5;
    double csw = 1;
    std::array<lattice::boundary, lattice::dimensions> boundaries{
        lattice::boundary::periodic, lattice::boundary::periodic, lattice::boundary::periodic,
        lattice::boundary::antiperiodic};

    /// For codes that give kappa = 1 / (2 (4 + m0)) instead of m0. With kappa = 0 the mass is infinite, which operators
    /// refuse.
    [[nodiscard]] static constexpr wilson_parameters from_kappa(double kappa, double csw) {
        return {.m0 = 1 / (2 * kappa) - 4, .csw = csw};
    }
};

} // namespace halocline::dirac
