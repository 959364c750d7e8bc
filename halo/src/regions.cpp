// SPDX-License-Identifier: Apache-2.0
#include "regions.hpp"

#include <halocline/base/error.hpp>

#include <limits>

namespace halocline::halo {

using lattice::dimensions;
using lattice::side;

void check(const lattice::decomposition& cut, const plan_options& options, int ranks) {
    const std::string who = "halo '" + options.name + "': ";
    if (cut.ranks() != ranks)
        throw input_error(who + "the lattice is cut over " + std::to_string(cut.ranks()) + " ranks (rank grid " +
                          lattice::to_string(cut.rank_grid()) + "), the job has " + std::to_string(ranks));
    if (options.bytes_per_site == 0)
        throw input_error(who + "0 bytes per site; say in plan_options::bytes_per_site what a site sends");
    for (int mu = 0; mu < dimensions; ++mu) {
        for (const face f : {face{mu, side::low}, face{mu, side::high}}) {
            const int width = options.widths.behind(f);
            if (width < 0)
                throw input_error(who + "ghost width " + std::to_string(width) + " behind " + lattice::to_string(f) +
                                  ": must be 0 or more");
            if (!is_exchanged(cut, options, mu)) continue;
            // Boxes of one grid line differ only along it: the ranks on the axis stand for all.
            for (int i = 0; i < cut.rank_grid()[mu]; ++i) {
                lattice::coordinate position{};
                position[mu] = i;
                const int source = cut.rank_at(position);
                const int extent = cut.local_box(source).extents[mu];
                // `source` fills the ghosts behind f of the rank behind its own opposite face.
                if (is_exchanged(cut, options, source, f.opposite()) && width > extent)
                    throw input_error(who + "ghost width " + std::to_string(width) + " behind " + lattice::to_string(f) +
                                      " is wider than the local box of rank " + std::to_string(source) + ", " +
                                      lattice::to_string(cut.local_box(source).extents) + " with " + std::to_string(extent) +
                                      " in " + "xyzt"[mu] + "; cut " + "xyzt"[mu] + " over fewer ranks or make it " +
                                      std::to_string(extent) + " or less");
            }
        }
    }
}

} // namespace halocline::halo
