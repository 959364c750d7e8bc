// SPDX-License-Identifier: Apache-2.0
// openQCD's gauge files, made here byte by byte from the format's specification.
#pragma once

#include "gauge_formats.hpp"

namespace halocline_test {

/// link(site, mu): the matrix; its extents are even. x0, x1, x2, x3 of the specification are t, z, y, x here.
template <class Link>
std::string openqcd(const coordinate& lattice, Link&& link, double plaquette) {
    std::string out;
    for (int mu = 3; mu >= 0; --mu) out += bytes_of(static_cast<std::uint64_t>(lattice[mu]), 4, false);
    out += real(3 * plaquette, 8, false);
    const auto add = [&](const coordinate& x, int mu) {
        for (const std::complex<double>& z : link(lexicographic_index(x, lattice), mu))
            out += real(z.real(), 8, false) + real(z.imag(), 8, false);
    };
    coordinate x{};
    for (x[3] = 0; x[3] < lattice[3]; ++x[3])
        for (x[2] = 0; x[2] < lattice[2]; ++x[2])
            for (x[1] = 0; x[1] < lattice[1]; ++x[1])
                for (x[0] = 0; x[0] < lattice[0]; ++x[0]) {
                    if ((x[0] + x[1] + x[2] + x[3]) % 2 == 0) continue;
                    for (int mu = 3; mu >= 0; --mu) {
                        coordinate behind = x;
                        behind[mu] = (x[mu] + lattice[mu] - 1) % lattice[mu];
                        add(x, mu);
                        add(behind, mu);
                    }
                }
    return out;
}

} // namespace halocline_test
