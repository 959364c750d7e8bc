// SPDX-License-Identifier: Apache-2.0
// What is done with the phases of twisted boundaries.
#pragma once

#include <halocline/halo/boundary_phases.hpp>
#include <halocline/lattice/geometry.hpp>

#include <array>
#include <complex>
#include <cstdint>

namespace halocline::halo {

/// The phases, with the sign of each antiperiodic boundary.
inline boundary_phases with_signs(boundary_phases phases,
                                  const std::array<lattice::boundary, lattice::dimensions>& boundaries) {
    for (int mu = 0; mu < lattice::dimensions; ++mu)
        if (boundaries[mu] == lattice::boundary::antiperiodic) phases[mu] = -phases[mu];
    return phases;
}

/// to = phase * from, which may be the same array. Unless the phase is real, the reals are pairs (re, im).
/// T: float or double.  Pre: `count` is even then.
template <class T>
void multiply(const T* from, T* to, std::int64_t count, std::complex<double> phase) noexcept {
    const auto re = static_cast<T>(phase.real()), im = static_cast<T>(phase.imag());
    if (im == 0) {
        for (std::int64_t i = 0; i < count; ++i) to[i] = re * from[i];
        return;
    }
    for (std::int64_t i = 0; i + 1 < count; i += 2) {
        const T x = from[i], y = from[i + 1];
        to[i] = re * x - im * y;
        to[i + 1] = re * y + im * x;
    }
}

} // namespace halocline::halo
