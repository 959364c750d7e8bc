// SPDX-License-Identifier: Apache-2.0
// The fixed tree of a global sum: recursive halving of the leaves 0 to n - 1. Which leaves swap their partial results,
// and how these are combined, is arithmetic that every rank can do for every other
// (docs/decisions/0038-global-sums.md).
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace halocline::comm {

/// Leaves [first, last) of the tree.
struct leaf_interval {
    std::size_t first = 0, last = 0;
    [[nodiscard]] std::size_t size() const { return last - first; }
    [[nodiscard]] std::size_t middle() const { return first + size() / 2; }
    [[nodiscard]] leaf_interval half_with(std::size_t leaf) const {
        return leaf < middle() ? leaf_interval{first, middle()} : leaf_interval{middle(), last};
    }
};

/// The leaves with which a leaf swaps everything it has.
struct swap_step {
    std::vector<std::size_t> partners;
    bool left = false; ///< above the group: is the leaf in the first half?
};
struct leaf_steps {
    leaf_interval group;          ///< at most largest_group leaves, which exchange everything
    std::vector<swap_step> steps; ///< the group's first, then upwards
};

/// All leaves get the same number of steps, because their channels are made collectively: a leaf with one level less
/// than others gets a step without partners.
leaf_steps steps_of(std::size_t leaf, std::size_t leaves, std::size_t largest_group);

/// Leaf of each rank; an empty order means by number.  Err: input_error: not a permutation of the ranks.
std::vector<std::size_t> leaf_of_each(std::span<const int> rank_order, int ranks);

/// result <- parts [first, last), of n elements each, combined in the order of the tree.
/// Pre: `scratch` has room for n elements per level.
template <class Combine>
void over_leaves(const double* const* parts, leaf_interval all, std::size_t n, double* result, double* scratch,
                 Combine combine) noexcept {
    if (all.size() == 1) {
        std::copy_n(parts[all.first], n, result);
        return;
    }
    const leaf_interval low{all.first, all.middle()}, high{all.middle(), all.last};
    const double *left = parts[low.first], *right = parts[high.first];
    if (low.size() > 1) {
        over_leaves(parts, low, n, result, scratch, combine);
        left = result;
    }
    if (high.size() > 1) {
        over_leaves(parts, high, n, scratch, scratch + n, combine);
        right = scratch;
    }
    for (std::size_t i = 0; i < n; ++i) result[i] = combine(left[i], right[i]);
}

} // namespace halocline::comm
