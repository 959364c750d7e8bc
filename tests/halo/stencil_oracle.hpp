// SPDX-License-Identifier: Apache-2.0
// Stencils by their definition, as plain loops over the whole lattice in one array, and the random boundaries with which
// they are compared.
#pragma once

#include "phase_oracle.hpp"

#include <algorithm>
#include <complex>
#include <cstdint>
#include <string>
#include <vector>

namespace halocline_test {

/// y(x) = sum over the steps k of weight(k) u(x + k), where component c takes component c + 1 (of n, around) of u.
struct linear_stencil {
    std::vector<coordinate> steps;
    double (*weight)(const coordinate& step);
    double (*first)(const coordinate& x, int c);   ///< u at the beginning
    double (*outside)(const coordinate& x, int c); ///< u beyond open edges
};

/// u after so many applications, by site, x fastest, and component.
template <int n, class Options>
std::vector<double> by_definition(const linear_stencil& s, const coordinate& e, const Options& options,
                                  int applications) {
    using lattice::boundary;
    const lattice::box whole{{}, e};
    phases twists = twists_of(options);
    for (int mu = 0; mu < dimensions; ++mu)
        if (options.boundaries[mu] == boundary::open) twists[mu] = 1;
    std::vector<double> u(static_cast<std::size_t>(whole.volume() * n)), next(u.size());
    const auto at = [&](const coordinate& x, int c) { return static_cast<std::size_t>(whole.index(x) * n + c); };
    for (std::int64_t i = 0; i < whole.volume(); ++i)
        for (int c = 0; c < n; ++c) u[at(whole.site(i), c)] = s.first(whole.site(i), c);
    for (int step = 0; step < applications; ++step) {
        for (std::int64_t i = 0; i < whole.volume(); ++i)
            for (int c = 0; c < n; ++c) {
                double sum = 0;
                for (const coordinate& k : s.steps) {
                    coordinate y = whole.site(i);
                    for (int mu = 0; mu < dimensions; ++mu) y[mu] += k[mu];
                    const std::complex<double> phase = phase_at(y, e, twists);
                    bool outside = false;
                    for (int mu = 0; mu < dimensions; ++mu) {
                        if (options.boundaries[mu] == boundary::open)
                            outside = outside || y[mu] < 0 || y[mu] >= e[mu];
                        else
                            y[mu] = (y[mu] % e[mu] + e[mu]) % e[mu];
                    }
                    sum += s.weight(k) *
                           times(phase, (c + 1) % n, [&](int m) { return outside ? s.outside(y, m) : u[at(y, m)]; });
                }
                next[at(whole.site(i), c)] = sum;
            }
        u.swap(next);
    }
    return u;
}

/// Boundaries and phases, half of the time with none but periodic and open edges. Returns whether others are possible.
template <class Options>
bool draw_boundaries(std::mt19937& g, Options& options, bool pairs) {
    using lattice::boundary;
    const bool twisted = drawn(g, 0, 1) == 0;
    if (twisted) options.phases = random_phases(g, pairs);
    for (boundary& b : options.boundaries) {
        b = static_cast<boundary>(drawn(g, 0, 2));
        if (!twisted && b == boundary::antiperiodic) b = boundary::periodic;
    }
    return twisted;
}
template <class Options>
std::string boundaries_text(const Options& options) {
    std::string text;
    for (int mu = 0; mu < dimensions; ++mu) {
        const std::complex<double>& phase = options.phases[mu];
        text.append(" ").append(to_string(options.boundaries[mu]));
        text += " (" + std::to_string(phase.real()) + " " + std::to_string(phase.imag()) + ")";
    }
    return text;
}

} // namespace halocline_test
