// SPDX-License-Identifier: Apache-2.0
// Gauge fields, spinors, and sums over all ranks: what the tests of dirac/ share.
#pragma once

#include <halocline_test/global_fields.hpp>

#include <array>
#include <complex>
#include <cstring>
#include <string>

namespace halocline_test {

using halocline::comm::job;
using halocline::dirac::su3;
using halocline::lattice::coordinate;
using halocline::lattice::decomposition;
using halocline::lattice::gauge_field;
using spinor_field = halocline::lattice::field<double>;
namespace lattice = halocline::lattice;

/// A random SU(3) matrix that belongs to (stream, global site, mu).
inline su3 random_su3(std::uint32_t stream, const coordinate& x, const coordinate& global, int mu) {
    lattice::site_random random(12345, stream * 4 + static_cast<std::uint32_t>(mu),
                                static_cast<std::uint64_t>(lattice::lexicographic_index(x, global)));
    su3 u{};
    for (int e = 0; e < 6; ++e) {
        const double re = random.normal();
        u[e] = {re, random.normal()};
    }
    return halocline::dirac::reunitarise(u);
}

inline gauge_field random_links(const lattice::box& local, const coordinate& global, std::uint32_t stream = 1) {
    return make_links(local, [&](const coordinate& x, int mu) { return random_su3(stream, x, global, mu); });
}

inline gauge_field unit_links(const lattice::box& local) {
    return make_links(local, [](const coordinate&, int) { return halocline::dirac::su3_identity; });
}

inline spinor_field random_spinor(const lattice::box& local, const coordinate& global, std::uint32_t stream) {
    spinor_field psi(lattice::site_order::lexicographic(local.extents), lattice::spinor_components);
    fill_random(psi, local, global, stream);
    return psi;
}

/// A spinor field whose components are all 1.
inline spinor_field ones(const lattice::box& local) {
    spinor_field psi(lattice::site_order::lexicographic(local.extents), lattice::spinor_components);
    for (std::int64_t site = 0; site < psi.volume(); ++site)
        for (int c = 0; c < lattice::spinor_components; c += 2) psi.at(site, c) = 1;
    return psi;
}

/// <a, b> = sum over ranks of conj(a) b
inline std::complex<double> inner(const job& j, const spinor_field& a, const spinor_field& b) {
    std::array<long double, 2> sum{};
    for (std::int64_t site = 0; site < a.volume(); ++site)
        for (int c = 0; c < lattice::spinor_components; c += 2) {
            const auto term = std::conj(std::complex(a.at(site, c), a.at(site, c + 1))) *
                              std::complex(b.at(site, c), b.at(site, c + 1));
            sum[0] += term.real(), sum[1] += term.imag();
        }
    std::array<long double, 2> total{};
    for (const std::string& part : j.gather({reinterpret_cast<const char*>(&sum), sizeof sum})) {
        std::array<long double, 2> other;
        std::memcpy(&other, part.data(), sizeof other);
        total[0] += other[0], total[1] += other[1];
    }
    return {static_cast<double>(total[0]), static_cast<double>(total[1])};
}

} // namespace halocline_test
