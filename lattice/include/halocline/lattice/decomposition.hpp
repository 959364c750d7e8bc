// SPDX-License-Identifier: Apache-2.0
// How the global lattice is cut over ranks: a rank grid, and cuts per dimension that may be uneven.
// Invariant: every global site belongs to exactly one rank; local boxes of one grid line have equal cross-sections.
#pragma once

#include <halocline/lattice/geometry.hpp>

#include <array>
#include <memory>
#include <string>
#include <vector>

namespace halocline::lattice {

/// A cut of the global lattice over a grid of ranks. A value: cheap to copy, equal on every rank.
/// Ranks are numbered lexicographically over the rank grid, x fastest, unless with_rank_order() gave them other places.
class decomposition {
  public:
    /// Pre: cuts[mu] is increasing, starts with 0 and ends with global[mu].  Err: input_error otherwise.
    decomposition(coordinate global, std::array<std::vector<int>, dimensions> cuts);

    /// The even cut, in units of `granularity` sites. If the number of units is not a multiple of the rank grid, the
    /// first ranks get one unit more.
    /// Err: input_error if a rank would get nothing, or if the unit does not divide the lattice.
    static decomposition even(const coordinate& global, const coordinate& rank_grid,
                              const coordinate& granularity = {1, 1, 1, 1});
    /// The even cut over the rank grid that choose_rank_grid() chooses, which also says why.
    /// Err: input_error if there is none, naming the largest number of ranks that has one.
    static decomposition chosen(const coordinate& global, int ranks, const coordinate& granularity = {1, 1, 1, 1});

    /// This cut with other owners: the i-th place of the rank grid (in lexicographic order) belongs to rank order[i].
    /// Empty: lexicographic.  Err: input_error if that is not a permutation of the ranks.
    [[nodiscard]] decomposition with_rank_order(std::vector<int> order) const;
    /// The order that with_rank_order() was given. Empty: lexicographic.
    [[nodiscard]] const std::vector<int>& rank_order() const;

    [[nodiscard]] const coordinate& global() const { return global_; }
    [[nodiscard]] const coordinate& rank_grid() const { return rank_grid_; }
    [[nodiscard]] int ranks() const; ///< volume(rank_grid())
    /// Cuts of dimension mu: rank-grid position i owns [cuts[i], cuts[i+1]).
    [[nodiscard]] const std::vector<int>& cuts(int mu) const { return cuts_[mu]; }
    // The place of a rank.  Err: input_error unless 0 <= rank < ranks().
    [[nodiscard]] box local_box(int rank) const;            ///< in global coordinates
    [[nodiscard]] coordinate grid_position(int rank) const; ///< its place in the rank grid
    /// The inverse of grid_position().  Err: input_error: a position outside the rank grid.
    [[nodiscard]] int rank_at(const coordinate& grid_position) const;
    /// The rank behind face f, with wrap-around; the rank itself if the dimension is not cut.
    [[nodiscard]] int neighbour(int rank, face f) const;
    /// True if the neighbour behind f is across the edge of the global lattice.
    [[nodiscard]] bool wraps(int rank, face f) const;
    /// The rank whose local box contains a site.  Err: input_error: a site outside the lattice.
    [[nodiscard]] int owner(const coordinate& global_site) const;

    friend bool operator==(const decomposition& a, const decomposition& b) {
        return a.global_ == b.global_ && a.cuts_ == b.cuts_ && a.rank_order() == b.rank_order();
    }

  private:
    coordinate global_{};
    coordinate rank_grid_{};
    std::array<std::vector<int>, dimensions> cuts_;
    struct placement {
        std::vector<int> rank_at, place_of; // rank by place, place by rank
    };
    std::shared_ptr<const placement> placement_; // null: the same numbers; copies share it
};

/// A rank grid, and the reason for it in words, for human readers.
struct rank_grid_choice {
    coordinate rank_grid{};
    std::string why;
};

/// All grids of `ranks` ranks whose cuts fall on multiples of the granularity. First come those with the fewest sites
/// per exchange (the surface of the largest box); among equals, those that cut t rather than z, z rather than y, y
/// rather than x. Empty if there is none.
std::vector<coordinate> admissible_rank_grids(const coordinate& global, int ranks, const coordinate& granularity);

/// The first of admissible_rank_grids(). Cuts fall on multiples of the granularity, e.g. of a multigrid's blocks.
/// Err: input_error if there is none, naming the largest number of ranks that has one.
rank_grid_choice choose_rank_grid(const coordinate& global, int ranks, const coordinate& granularity = {1, 1, 1, 1});

} // namespace halocline::lattice
