// SPDX-License-Identifier: Apache-2.0
#include "blocks_for_ranks.hpp"

#include <halocline/amg/options.hpp>
#include <halocline/lattice/decomposition.hpp>

#include <algorithm>
#include <tuple>
#include <vector>

namespace halocline::app {
namespace {

using lattice::coordinate;

std::vector<int> block_extents(int extent) {
    std::vector<int> extents{extent};
    for (int b = 1; b <= 5; ++b)
        if (b < extent && extent % b == 0) extents.push_back(b);
    return extents;
}

/// The best block has the smallest rank.
auto rank_of(const coordinate& block, const coordinate& global, int vectors) {
    const auto [least, most] = std::ranges::minmax(block);
    int odd_numbers = 0;
    for (int mu = 0; mu < lattice::dimensions; ++mu) odd_numbers += global[mu] / block[mu] % 2;
    const bool tight = amg::most_vectors(block) < std::int64_t{2} * vectors; // the coarse grid saves little
    return std::tuple(tight, most - least, odd_numbers, -lattice::volume(block));
}

} // namespace

std::optional<coordinate> blocks_for_ranks(const coordinate& global, int ranks, int vectors) {
    std::optional<coordinate> best;
    for (const int x : block_extents(global[0]))
        for (const int y : block_extents(global[1]))
            for (const int z : block_extents(global[2]))
                for (const int t : block_extents(global[3])) {
                    const coordinate block{x, y, z, t};
                    if (vectors > amg::most_vectors(block)) continue;
                    if (best && rank_of(block, global, vectors) >= rank_of(*best, global, vectors)) continue;
                    if (!lattice::admissible_rank_grids(global, ranks, block).empty()) best = block;
                }
    return best;
}

} // namespace halocline::app
