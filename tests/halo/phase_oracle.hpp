// SPDX-License-Identifier: Apache-2.0
// What a site beyond the edges of the lattice must hold if boundaries are twisted. The phases drawn here only add and
// subtract whole numbers, so that every product of them is exact, in float too.
#pragma once

#include "oracle.hpp"

#include <algorithm>
#include <complex>

namespace halocline_test {

using phases = std::array<std::complex<double>, dimensions>;

inline bool has_phase(const phases& all) {
    return std::ranges::any_of(all, [](const std::complex<double>& p) { return p != 1.0; });
}

/// For each dimension 1, -1, and for pairs of reals also i and 1 + i.
inline phases random_phases(std::mt19937& g, bool pairs) {
    const std::array<std::complex<double>, 4> choice{{1, -1, {0, 1}, {1, 1}}};
    phases all;
    for (auto& p : all) p = choice[static_cast<std::size_t>(drawn(g, 0, pairs ? 3 : 1))];
    return all;
}

/// What options ask for: their phases, and a change of sign for each antiperiodic boundary.
template <class Options>
phases twists_of(const Options& o) {
    phases all = o.phases;
    for (int mu = 0; mu < dimensions; ++mu)
        if (o.boundaries[mu] == lattice::boundary::antiperiodic) all[mu] *= -1;
    return all;
}

/// What the site x (not wrapped around) is multiplied by.
inline std::complex<double> phase_at(const coordinate& x, const coordinate& global, const phases& all) {
    std::complex<double> product = 1;
    for (int mu = 0; mu < dimensions; ++mu) {
        if (x[mu] >= global[mu]) product *= all[mu];
        if (x[mu] < 0) product *= std::conj(all[mu]);
    }
    return product;
}

/// Component c of phase * a site whose component k is value(k).
template <class Value>
auto times(std::complex<double> phase, int c, Value&& value) -> decltype(value(c)) {
    using T = decltype(value(c));
    const auto re = static_cast<T>(phase.real()), im = static_cast<T>(phase.imag());
    if (im == 0) return re * value(c);
    return c % 2 == 0 ? re * value(c) - im * value(c + 1) : re * value(c) + im * value(c - 1);
}

} // namespace halocline_test
