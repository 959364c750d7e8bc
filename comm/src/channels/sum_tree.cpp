// SPDX-License-Identifier: Apache-2.0
#include "sum_tree.hpp"

#include <halocline/base/error.hpp>

#include <numeric>
#include <string>

namespace halocline::comm {
namespace {

/// Leaves with which this one swaps where two halves meet: the leaf at the same place in the other half. If the second
/// half is larger by one, its last leaf is served by the last of the first.
std::vector<std::size_t> partners(const leaf_interval& both, std::size_t leaf) {
    const std::size_t middle = both.middle(), left = middle - both.first, right = both.last - middle;
    if (leaf >= middle) return {both.first + std::min(leaf - middle, left - 1)};
    const std::size_t place = leaf - both.first;
    std::vector<std::size_t> all{middle + place};
    if (place + 1 == left && right > left) all.push_back(both.last - 1);
    return all;
}

} // namespace

leaf_steps steps_of(std::size_t leaf, std::size_t leaves, std::size_t largest_group) {
    std::size_t levels = 0; // above the groups, for the leaf that has the most
    for (std::size_t size = leaves; size > largest_group; size -= size / 2) ++levels; // the second half is the larger
    std::vector<leaf_interval> halved;                                                // from the top
    leaf_interval group{0, leaves};
    for (; group.size() > largest_group; group = group.half_with(leaf)) halved.push_back(group);

    leaf_steps all{group, std::vector<swap_step>(levels + 1)};
    for (std::size_t l = group.first; l < group.last; ++l)
        if (l != leaf) all.steps.front().partners.push_back(l);
    for (std::size_t level = 0; level < halved.size(); ++level)
        all.steps[levels - level] = {partners(halved[level], leaf), leaf < halved[level].middle()};
    return all;
}

std::vector<std::size_t> leaf_of_each(std::span<const int> rank_order, int ranks) {
    constexpr auto none = static_cast<std::size_t>(-1);
    std::vector<std::size_t> leaf_of(static_cast<std::size_t>(ranks), none);
    if (rank_order.empty()) std::iota(leaf_of.begin(), leaf_of.end(), std::size_t{0});
    for (std::size_t leaf = 0; leaf < rank_order.size(); ++leaf) {
        const int rank = rank_order[leaf];
        if (rank < 0 || rank >= ranks || leaf_of[rank] != none)
            throw input_error("rank order of a global sum: rank " + std::to_string(rank) + " is none of 0 to " +
                              std::to_string(ranks - 1) + " or is named twice");
        leaf_of[rank] = leaf;
    }
    if (std::ranges::find(leaf_of, none) != leaf_of.end())
        throw input_error("rank order of a global sum: it names " + std::to_string(rank_order.size()) + " of " +
                          std::to_string(ranks) + " ranks; it must name all");
    return leaf_of;
}

} // namespace halocline::comm
