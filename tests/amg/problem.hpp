// SPDX-License-Identifier: Apache-2.0
// Gauge fields and vectors for tests of amg/, keyed by global sites: the same for every decomposition.
#pragma once

#include <halocline/dirac/padded_links.hpp>
#include <halocline/lattice/random.hpp>

#include <cmath>
#include <complex>

namespace amg_test {

using namespace halocline;

inline std::uint64_t global_index(const lattice::box& local, const lattice::coordinate& global, std::int64_t site) {
    lattice::coordinate x = lattice::lexicographic_coordinate(site, local.extents);
    for (int mu = 0; mu < lattice::dimensions; ++mu) x[mu] += local.origin[mu];
    return static_cast<std::uint64_t>(lattice::lexicographic_index(x, global));
}

/// Random SU(3) links, 1 + roughness * noise made unitary: rough enough to need a solver, smooth enough to converge.
inline lattice::gauge_field gauge_near_unity(const lattice::decomposition& cut, int rank, double roughness) {
    using complex = std::complex<double>;
    const lattice::box local = cut.local_box(rank);
    lattice::gauge_field links(lattice::site_order::lexicographic(local.extents), lattice::gauge_components);
    for (std::int64_t site = 0; site < links.volume(); ++site) {
        lattice::site_random random(7, 1000, global_index(local, cut.global(), site));
        for (int mu = 0; mu < lattice::dimensions; ++mu) {
            complex u[3][3];
            for (int i = 0; i < 3; ++i)
                for (int k = 0; k < 3; ++k) {
                    const double re = random.normal(), im = random.normal();
                    u[i][k] = (i == k ? 1.0 : 0.0) + roughness * complex(re, im);
                }
            for (int i = 0; i < 2; ++i) {
                for (int l = 0; l < i; ++l) {
                    complex dot = 0;
                    for (int k = 0; k < 3; ++k) dot += std::conj(u[l][k]) * u[i][k];
                    for (int k = 0; k < 3; ++k) u[i][k] -= dot * u[l][k];
                }
                double norm = 0;
                for (int k = 0; k < 3; ++k) norm += std::norm(u[i][k]);
                for (int k = 0; k < 3; ++k) u[i][k] /= std::sqrt(norm);
            }
            for (int k = 0; k < 3; ++k)
                u[2][k] = std::conj(u[0][(k + 1) % 3] * u[1][(k + 2) % 3] - u[0][(k + 2) % 3] * u[1][(k + 1) % 3]);
            for (int e = 0; e < 9; ++e) {
                links.at(site, mu * lattice::link_components + 2 * e) = u[e / 3][e % 3].real();
                links.at(site, mu * lattice::link_components + 2 * e + 1) = u[e / 3][e % 3].imag();
            }
        }
    }
    return links;
}

/// Normal random numbers in any site order.
template <class T>
void fill_random(lattice::field<T>& v, const lattice::box& local, const lattice::coordinate& global,
                 std::uint32_t stream) {
    for (std::int64_t site = 0; site < v.volume(); ++site) {
        lattice::site_random random(11, stream, global_index(local, global, site));
        for (int c = 0; c < v.components(); ++c) v.at(site, c) = static_cast<T>(random.normal());
    }
}

template <class T>
double norm(const lattice::field<T>& v) {
    double sum = 0;
    for (T x : v.values()) sum += static_cast<double>(x) * static_cast<double>(x);
    return std::sqrt(sum);
}

/// ||a - b|| / ||b|| of this rank.
template <class T>
double distance(const lattice::field<T>& a, const lattice::field<T>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.values().size(); ++i) {
        const double d = static_cast<double>(a.values()[i]) - static_cast<double>(b.values()[i]);
        sum += d * d;
    }
    return std::sqrt(sum) / norm(b);
}

} // namespace amg_test
