// SPDX-License-Identifier: Apache-2.0
// Fields that depend only on the global lattice: the same for every cut, site order and precision.
#pragma once

#include <halocline/dirac/padded_links.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>
#include <halocline/lattice/random.hpp>
#include <halocline/lattice/site_order.hpp>

#include <complex>
#include <cstdint>

namespace halocline_test {

/// Calls visit(site, global coordinate) for the sites of a box.
template <class Visit>
void for_each_site(const halocline::lattice::box& local, Visit&& visit) {
    for (std::int64_t site = 0; site < local.volume(); ++site) visit(site, local.site(site));
}

/// The random numbers of a global site.
inline halocline::lattice::site_random random_of(std::uint32_t stream, const halocline::lattice::coordinate& x,
                                                 const halocline::lattice::coordinate& global) {
    return {7, stream, static_cast<std::uint64_t>(halocline::lattice::lexicographic_index(x, global))};
}

/// Normal random numbers.
template <class T>
void fill_random(halocline::lattice::field<T>& v, const halocline::lattice::box& local,
                 const halocline::lattice::coordinate& global, std::uint32_t stream) {
    for_each_site(local, [&](std::int64_t site, const halocline::lattice::coordinate& x) {
        auto random = random_of(stream, x, global);
        for (int c = 0; c < v.components(); ++c) v.at(site, c) = static_cast<T>(random.normal());
    });
}

template <class Link> // su3 link(global coordinate, mu)
halocline::lattice::gauge_field make_links(const halocline::lattice::box& local, Link&& link) {
    namespace lattice = halocline::lattice;
    lattice::gauge_field links(lattice::site_order::lexicographic(local.extents), lattice::gauge_components);
    for_each_site(local, [&](std::int64_t site, const lattice::coordinate& x) {
        for (int mu = 0; mu < lattice::dimensions; ++mu) {
            const halocline::dirac::su3 u = link(x, mu);
            for (int e = 0; e < 9; ++e) {
                links.at(site, lattice::link_components * mu + 2 * e) = u[e].real();
                links.at(site, lattice::link_components * mu + 2 * e + 1) = u[e].imag();
            }
        }
    });
    return links;
}

/// 1 + roughness * noise, made unitary: rough enough to need a solver, smooth enough to converge.
inline halocline::lattice::gauge_field links_near_one(const halocline::lattice::box& local,
                                                      const halocline::lattice::coordinate& global, double roughness) {
    return make_links(local, [&](const halocline::lattice::coordinate& x, int mu) {
        auto random = random_of(1000 + static_cast<std::uint32_t>(mu), x, global);
        halocline::dirac::su3 u{};
        for (int e = 0; e < 9; ++e) {
            const double re = random.normal(), im = random.normal();
            u[e] = std::complex<double>(e % 4 == 0 ? 1 : 0) + roughness * std::complex<double>(re, im);
        }
        return halocline::dirac::reunitarise(u);
    });
}

} // namespace halocline_test
