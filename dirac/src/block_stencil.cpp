// SPDX-License-Identifier: Apache-2.0
#include "block_stencil.hpp"

#include <vector>

namespace halocline::dirac {

using lattice::coordinate;
using lattice::dimensions;
using lattice::side;

template <class T>
kernels::block_stencil<T> make_stencil(const lattice::block_layout& b) {
    kernels::block_stencil<T> stencil;
    stencil.sites = b.sites_per_group;
    stencil.even_sites = b.even_sites;
    stencil.splits_per_block = b.splits_per_block;

    // sites of the sub-box in their order: even ones first
    std::vector<coordinate> sites;
    std::vector<int> place(static_cast<std::size_t>(b.sites_per_group));
    for (int p = 0; p < 2; ++p)
        for (int i = 0; i < b.sites_per_group; ++i) {
            const coordinate c = lattice::lexicographic_coordinate(i, b.sub);
            if (lattice::parity(c) != p) continue;
            place[i] = static_cast<int>(sites.size());
            sites.push_back(c);
        }

    for (const coordinate& c : sites) {
        int split = -1;
        for (int mu = 0; mu < dimensions; ++mu) {
            if (b.split[mu]) ++split;
            for (side end : {side::low, side::high}) {
                coordinate n = c;
                n[mu] += end == side::high ? 1 : -1;
                kernels::hop step{-1, -1};
                const bool inside = n[mu] >= 0 && n[mu] < b.sub[mu];
                if (!inside && b.split[mu]) {
                    n[mu] = (n[mu] + b.sub[mu]) % b.sub[mu];
                    step.split = split;
                }
                if (inside || b.split[mu]) step.site = place[lattice::lexicographic_index(n, b.sub)];
                stencil.hops.push_back(step);
            }
        }
    }
    for (int j = 0; j < kernels::max_splits; ++j)
        for (int lane = 0; lane < kernels::max_lanes; ++lane) {
            // over the high face of half 0 and over the low face of half 1 lies the other half
            const int half = lane >> j & 1;
            stencil.partner[j][lane] = lane ^ 1 << j;
            stencil.inside[j][0][lane] = half == 1 ? -1 : 0;
            stencil.inside[j][1][lane] = half == 0 ? -1 : 0;
        }
    return stencil;
}

template kernels::block_stencil<float> make_stencil(const lattice::block_layout&);
template kernels::block_stencil<double> make_stencil(const lattice::block_layout&);

} // namespace halocline::dirac
