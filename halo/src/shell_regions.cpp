// SPDX-License-Identifier: Apache-2.0
#include "shell_regions.hpp"

namespace halocline::halo {
namespace {

using lattice::box;
using lattice::coordinate;
using lattice::dimensions;
using lattice::side;

coordinate direction_of(int index) { // 0 … 80; 40 is the box itself
    coordinate d = lattice::lexicographic_coordinate(index, {3, 3, 3, 3});
    for (int& step : d) step -= 1;
    return d;
}
constexpr int directions = 81;

face face_towards(int mu, int step) { return {mu, step < 0 ? side::low : side::high}; }

/// Are there ghosts behind this face of `rank`?
bool is_filled(const lattice::decomposition& cut, int rank, const padded_options& o, face f) {
    return o.widths.behind(f) > 0 && !(cut.wraps(rank, f) && o.boundaries[f.mu] == lattice::boundary::open);
}

int neighbour(const lattice::decomposition& cut, int rank, const coordinate& d) {
    for (int mu = 0; mu < dimensions; ++mu)
        if (d[mu] != 0) rank = cut.neighbour(rank, face_towards(mu, d[mu]));
    return rank;
}

/// The layers that lie along d: of ghosts outside the box, or of its own sites inside it. Global coordinates. Where d is 0
/// in a dimension before `grown_below`, the ghosts there belong to the box.
box layers_along(const lattice::decomposition& cut, int rank, const padded_options& o, const coordinate& d,
                 bool outside, int grown_below) {
    box b = cut.local_box(rank);
    for (int mu = 0; mu < dimensions; ++mu) {
        if (d[mu] == 0) {
            if (mu >= grown_below) continue;
            const int low = is_filled(cut, rank, o, {mu, side::low}) ? o.widths.low[mu] : 0;
            const int high = is_filled(cut, rank, o, {mu, side::high}) ? o.widths.high[mu] : 0;
            b.origin[mu] -= low;
            b.extents[mu] += low + high;
            continue;
        }
        const int extent = b.extents[mu];
        // What lies inside fills the ghosts behind the neighbour's opposite face.
        const face ghosts = outside ? face_towards(mu, d[mu]) : face_towards(mu, -d[mu]);
        b.extents[mu] = o.widths.behind(ghosts);
        if (outside)
            b.origin[mu] += d[mu] < 0 ? -b.extents[mu] : extent;
        else
            b.origin[mu] += d[mu] < 0 ? 0 : extent - b.extents[mu];
    }
    return b;
}

/// Sites of a box of global coordinates as indices of the grown box; of those that are selected.
std::vector<std::int32_t> selected_sites(const box& region, const lattice::decomposition& cut, int rank,
                                         const padded_options& o) {
    const box outer = grown(cut.local_box(rank), o.widths);
    box local = region;
    for (int mu = 0; mu < dimensions; ++mu) local.origin[mu] -= outer.origin[mu];
    std::vector<std::int32_t> all = sites_of(local, outer.extents);
    if (!o.parity && !o.select) return all;
    std::vector<std::int32_t> chosen;
    for (std::size_t i = 0; i < all.size(); ++i) {
        coordinate x = lattice::lexicographic_coordinate(static_cast<std::int64_t>(i), region.extents);
        for (int mu = 0; mu < dimensions; ++mu) {
            const int extent = cut.global()[mu];
            x[mu] = ((x[mu] + region.origin[mu]) % extent + extent) % extent;
        }
        if ((!o.parity || lattice::parity(x) == *o.parity) && (!o.select || o.select(x))) chosen.push_back(all[i]);
    }
    return chosen;
}

/// Adds what goes out and what comes in along d.
void add(shell_transfers& t, const lattice::decomposition& cut, int rank, const padded_options& o, int index,
         int grown_below) {
    const coordinate d = direction_of(index);
    bool sent = true, received = true;
    for (int mu = 0; mu < dimensions; ++mu) {
        if (d[mu] == 0) continue;
        const face f = face_towards(mu, d[mu]);
        received = received && is_filled(cut, rank, o, f);
        sent = sent && is_filled(cut, cut.neighbour(rank, f), o, f.opposite());
    }
    const int peer = neighbour(cut, rank, d);
    // The receiver's direction names the transfer: the sender's is the opposite one.
    if (sent)
        t.sends.push_back({peer, static_cast<std::uint32_t>(directions - 1 - index),
                           selected_sites(layers_along(cut, rank, o, d, false, grown_below), cut, rank, o)});
    if (!received) return;
    const box ghosts = layers_along(cut, rank, o, d, true, grown_below);
    t.receives.push_back({peer, static_cast<std::uint32_t>(index), selected_sites(ghosts, cut, rank, o)});
    ghost_region region{d, ghosts, peer};
    const box outer = grown(cut.local_box(rank), o.widths);
    for (int mu = 0; mu < dimensions; ++mu) region.sites.origin[mu] -= outer.origin[mu];
    t.ghosts.push_back(region);
}

} // namespace

lattice::box grown(const box& local, const ghost_widths& widths) {
    box b = local;
    for (int mu = 0; mu < dimensions; ++mu) {
        b.origin[mu] -= widths.low[mu];
        b.extents[mu] += widths.low[mu] + widths.high[mu];
    }
    return b;
}

shell_transfers shell_at_once(const lattice::decomposition& cut, int rank, const padded_options& options) {
    shell_transfers t;
    for (int i = 0; i < directions; ++i) {
        int nonzero = 0;
        for (const int step : direction_of(i)) nonzero += step != 0;
        if (nonzero == 1 || (nonzero > 1 && options.shape == shell::box)) add(t, cut, rank, options, i, 0);
    }
    return t;
}

shell_transfers shell_along(const lattice::decomposition& cut, int rank, const padded_options& options, int mu) {
    shell_transfers t;
    for (int i = 0; i < directions; ++i) {
        const coordinate d = direction_of(i);
        bool along = d[mu] != 0;
        for (int nu = 0; nu < dimensions; ++nu) along = along && (nu == mu || d[nu] == 0);
        if (along) add(t, cut, rank, options, i, mu);
    }
    return t;
}

} // namespace halocline::halo
