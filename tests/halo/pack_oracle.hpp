// SPDX-License-Identifier: Apache-2.0
// What tests of packers and unpackers share: fields that are functions of the global lattice, half-spinor projections,
// site orders.
#pragma once

#include "oracle.hpp"

#include <halocline/halo/unpacker.hpp>

#include <cmath>
#include <complex>

namespace halocline_test {

using lattice::spinor_components; // 4 spins x 3 colours, complex

/// A real number of moderate size, by global coordinate.
inline double value_at(const coordinate& site, const coordinate& global, int component) {
    const auto index = static_cast<std::uint64_t>(lattice::lexicographic_index(site, global));
    const std::uint64_t hash = mixed(1000 * index + static_cast<std::uint64_t>(component));
    return static_cast<float>(std::ldexp(static_cast<double>(hash >> 40), -24) - 0.5) *
           std::exp2(static_cast<double>(hash % 7) - 3);
}

/// Half-spinor projections of some gamma matrices with entries i^n: two spins, each the sum of two.
inline std::array<halo::block_map, lattice::faces> half_spinors() {
    const std::complex<double> i{0, 1};
    std::array<halo::block_map, lattice::faces> maps;
    for (int f = 0; f < lattice::faces; ++f) {
        const double sign = f % 2 == 0 ? 1 : -1;
        const std::complex<double> power[] = {i, 1.0, -i, -1.0};
        const std::complex<double> c = sign * power[f / 2];
        maps[f] = {6, {{{0, 1}, {2 + f / 2 % 2, c}}, {{1, 1}, {3 - f / 2 % 2, std::conj(c)}}}};
    }
    return maps;
}

inline std::shared_ptr<const lattice::site_order> order_of(const lattice::box& local, const coordinate& global,
                                                           int lane_width) {
    if (lane_width == 0) return lattice::site_order::even_odd(local);
    if (lane_width == 1) return lattice::site_order::lexicographic(local.extents);
    return lattice::site_order::blocked(local, global, {2, 2, 2, 2}, lane_width);
}

template <class T>
lattice::field<T> filled(const std::shared_ptr<const lattice::site_order>& order, const lattice::box& local,
                         const coordinate& global, int first_component = 0) {
    lattice::field<T> x(order, spinor_components);
    for (std::int64_t s = 0; s < x.volume(); ++s) {
        const coordinate site = local.site(s);
        for (int c = 0; c < spinor_components; ++c)
            x.at(s, c) = static_cast<T>(value_at(site, global, first_component + c));
    }
    return x;
}

/// Starts an exchange of given numbers as if they had been packed: those of each message, field by field.
template <class T>
void start_with(halo::plan& p, const halo::packer<T>& pack, const std::vector<std::vector<T>>& messages) {
    p.start([&](int message, std::int64_t first, std::int64_t last, std::byte* target) {
        const std::vector<T>& values = messages[message];
        const auto fields = static_cast<std::size_t>(p.options().fields);
        const std::size_t sites = p.messages()[message].send_sites.size(), reals = values.size() / (fields * sites);
        for (std::size_t f = 0; f < fields; ++f)
            pack.write(&values[(f * sites + static_cast<std::size_t>(first)) * reals], first, last,
                       target + f * sites * p.options().bytes_per_site);
    });
}

} // namespace halocline_test
