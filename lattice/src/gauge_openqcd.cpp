// SPDX-License-Identifier: Apache-2.0
// openQCD: the header of DDalphaAMG, then for each odd site, x fastest, the links in +T, -T, +Z, -Z, +Y, -Y, +X, -X:
// those that start there and those that end there. Little endian, 64 bits, even extents. With an open boundary in t the
// links in t of the last time slice are zero.
#include "gauge_layout.hpp"

#include <algorithm>

namespace halocline::lattice {
namespace {

constexpr int links_per_odd_site = 2 * dimensions;
constexpr std::int64_t odd_site_bytes = std::int64_t{links_per_odd_site} * link_components * 8;

/// The odd sites are stored as the sites of a lattice of half the extent in x: x / 2, y, z, t.
coordinate halved(const coordinate& extents) { return {extents[0] / 2, extents[1], extents[2], extents[3]}; }

/// The part of it that contains all links that start in `local`.
box odd_sites_around(const box& local) {
    box odd = local;
    odd.origin[0] = local.origin[0] / 2;
    odd.extents[0] = (local.origin[0] + local.extents[0]) / 2 - odd.origin[0] + 1;
    for (int mu = 1; mu < dimensions; ++mu) ++odd.extents[mu];
    return odd;
}

coordinate odd_site(coordinate half) {
    half[0] = 2 * half[0] + (half[1] + half[2] + half[3] + 1) % 2;
    return half;
}

} // namespace

std::optional<gauge_file> as_openqcd(const gauge_file& file) {
    if (file.format != gauge_format::ddalphaamg || file.big_endian || !file.plaquette) return std::nullopt;
    if (std::ranges::any_of(file.extents, [](int e) { return e % 2 != 0; })) return std::nullopt;
    gauge_file other = file;
    other.format = gauge_format::openqcd;
    return other;
}

gauge_totals read_openqcd(const gauge_file& file, const binary_file& data, const box& local, gauge_field& links) {
    const box odd = odd_sites_around(local);
    const auto take = [&](const coordinate& start, int mu, const std::byte* stored) {
        if (!local.contains(start)) return;
        double* u = links.outer(local.index(start)) + mu * link_components;
        load_reals(stored, link_components, sizeof(double), file.big_endian, u);
    };
    const auto take_all = [&](std::int64_t, std::int64_t odd_number, std::span<const std::byte> bytes) {
        const coordinate x = odd_site(odd.site(odd_number));
        const std::byte* stored = bytes.data();
        for (int mu = dimensions - 1; mu >= 0; --mu) {
            constexpr std::int64_t link_bytes = link_components * 8;
            coordinate behind = x;
            --behind[mu];
            take(x, mu, stored);
            take(behind, mu, stored + link_bytes);
            stored += 2 * link_bytes;
        }
    };
    read_sites(data, file.data_offset, odd_site_bytes, odd, halved(file.extents), take_all);

    gauge_totals totals;
    for (std::int64_t site = 0; site < local.volume(); ++site)
        add_links(totals, file, local.site(site), links.outer(site));
    return totals;
}

} // namespace halocline::lattice
