// SPDX-License-Identifier: Apache-2.0
#include "block_stencil.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace halocline::dirac {

using lattice::coordinate;
using lattice::dimensions;
using lattice::face;
using lattice::side;

namespace {

struct lane_place {
    int group, lane;
};

/// The lane on the other side of the split plane that face f meets within its block; none if the face leaves the block,
/// or the block is not split.
std::optional<int> lane_inside(const lattice::block_layout& b, face f, int lane) {
    if (!b.split[f.mu]) return std::nullopt;
    const int bit = 1 << std::count(b.split.begin(), b.split.begin() + f.mu, true);
    const bool upper_half = (lane & bit) != 0;
    if (upper_half == (f.end == side::high)) return std::nullopt;
    return lane ^ bit;
}

/// The lane behind face f of the block in a lane, in whichever block of this rank that is.
std::optional<lane_place> lane_between(const lattice::block_layout& b, const coordinate& rank_grid, int group, face f,
                                       int lane) {
    const int block = b.block_of[group * b.blocks_per_group + lane / b.splits_per_block];
    if (block < 0 || lane_inside(b, f, lane)) return std::nullopt;
    coordinate neighbour = lattice::lexicographic_coordinate(block, b.grid);
    int& at = neighbour[f.mu];
    at += f.end == side::high ? 1 : -1;
    if (at < 0 || at >= b.grid[f.mu]) {
        if (rank_grid[f.mu] > 1) return std::nullopt;
        at = (at + b.grid[f.mu]) % b.grid[f.mu];
    }
    const int place = b.place_of[lattice::lexicographic_index(neighbour, b.grid)];
    int sub = lane % b.splits_per_block;
    if (b.split[f.mu]) sub ^= 1 << std::count(b.split.begin(), b.split.begin() + f.mu, true); // its nearer half
    return lane_place{place / b.blocks_per_group, place % b.blocks_per_group * b.splits_per_block + sub};
}

/// Groups the lanes of each vector by the vector that they come from.  source_of(group, face, lane): optional
/// lane_place.
template <class T, class SourceOf>
kernels::lane_sources<T> collect(int groups, int lane_width, int vectors, SourceOf&& source_of) {
    kernels::lane_sources<T> s;
    s.vectors = vectors;
    const int lanes = lane_width / vectors;
    for (int group = 0; group < groups; ++group)
        for (int index = 0; index < lattice::faces; ++index)
            for (int v = 0; v < vectors; ++v) {
                const auto first = static_cast<std::ptrdiff_t>(s.sources.size());
                s.begin.push_back(static_cast<std::int32_t>(first));
                for (int lane = 0; lane < lanes; ++lane) {
                    const std::optional<lane_place> from = source_of(group, lattice::face_of(index), v * lanes + lane);
                    if (!from) continue;
                    const int vector = from->lane / lanes;
                    auto source = std::find_if(s.sources.begin() + first, s.sources.end(), [&](const auto& other) {
                        return other.group == from->group && other.vector == vector;
                    });
                    if (source == s.sources.end()) {
                        s.sources.push_back({from->group, vector});
                        source = s.sources.end() - 1;
                    }
                    source->lane[lane] = from->lane % lanes;
                    source->taken[lane] = -1;
                }
            }
    s.begin.push_back(static_cast<std::int32_t>(s.sources.size()));
    return s;
}

} // namespace

template <class T>
kernels::block_stencil<T> make_stencil(const lattice::block_layout& b, int vectors) {
    kernels::block_stencil<T> stencil;
    stencil.sites = b.sites_per_group;
    stencil.even_sites = b.even_sites;
    stencil.splits_per_block = b.splits_per_block;

    // sites of the sub-box in storage order: even ones first
    std::vector<coordinate> sites;
    std::vector<int> place(static_cast<std::size_t>(b.sites_per_group));
    for (int p = 0; p < 2; ++p)
        for (int i = 0; i < b.sites_per_group; ++i) {
            const coordinate c = lattice::lexicographic_coordinate(i, b.sub);
            if (lattice::parity(c) != p) continue;
            place[i] = static_cast<int>(sites.size());
            sites.push_back(c);
        }

    stencil.walk.assign(place.begin(), place.end());
    for (const coordinate& c : sites)
        for (int index = 0; index < lattice::faces; ++index) {
            const face f = lattice::face_of(index);
            coordinate n = c;
            n[f.mu] += f.end == side::high ? 1 : -1;
            const bool same_lane = n[f.mu] >= 0 && n[f.mu] < b.sub[f.mu];
            n = lattice::wrapped(n, b.sub); // position of the neighbour in any sub-box
            stencil.hops.push_back({place[lattice::lexicographic_index(n, b.sub)], same_lane});
        }
    stencil.inside = collect<T>(1, b.lane_width, vectors, [&](int, face f, int lane) -> std::optional<lane_place> {
        const std::optional<int> other = lane_inside(b, f, lane);
        return other ? std::optional(lane_place{0, *other}) : std::nullopt;
    });
    return stencil;
}

template <class T>
kernels::lane_sources<T> sources_between(const lattice::block_layout& b, const coordinate& rank_grid, int vectors) {
    return collect<T>(b.groups[0] + b.groups[1], b.lane_width, vectors,
                      [&](int group, face f, int lane) { return lane_between(b, rank_grid, group, f, lane); });
}

template kernels::block_stencil<float> make_stencil(const lattice::block_layout&, int);
template kernels::block_stencil<double> make_stencil(const lattice::block_layout&, int);
template kernels::lane_sources<float> sources_between(const lattice::block_layout&, const coordinate&, int);
template kernels::lane_sources<double> sources_between(const lattice::block_layout&, const coordinate&, int);

} // namespace halocline::dirac
