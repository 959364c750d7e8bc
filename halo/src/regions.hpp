// SPDX-License-Identifier: Apache-2.0
// Which faces a plan exchanges, and which sites that are. Pure arithmetic on a decomposition: every rank can compute it
// for every other, so both ends of a message come to the same list without talking.
#pragma once

#include <halocline/halo/plan.hpp>

namespace halocline::halo {

/// The `width` layers of `local` (global coordinates) at its face f.  Pre: width <= the extent.
inline lattice::box layers(const lattice::box& local, face f, int width) {
    lattice::box region = local;
    region.extents[f.mu] = width;
    if (f.end == lattice::side::high) region.origin[f.mu] += local.extents[f.mu] - width;
    return region;
}

/// Calls visit(global site) for the sites of `region` that `select` holds for, x fastest.
template <class Select, class Visit>
void for_each_selected(const lattice::box& region, const Select& select, Visit&& visit) {
    for (std::int64_t i = 0; i < region.volume(); ++i) {
        lattice::coordinate x = lattice::lexicographic_coordinate(i, region.extents);
        for (int mu = 0; mu < lattice::dimensions; ++mu) x[mu] += region.origin[mu];
        if (select(x)) visit(x);
    }
}

/// Does dimension mu need messages at all?  Options: of a plan, or a width_check.
template <class Options>
bool is_exchanged(const lattice::decomposition& cut, const Options& options, int mu) {
    const bool has_width = options.widths.low[mu] > 0 || options.widths.high[mu] > 0;
    return has_width && (cut.rank_grid()[mu] > 1 || options.self_exchange);
}

/// Does `rank` exchange a message through its face f?
template <class Options>
bool is_exchanged(const lattice::decomposition& cut, const Options& options, int rank, face f) {
    const bool across_edge = cut.wraps(rank, f);
    return is_exchanged(cut, options, f.mu) && !(across_edge && options.boundaries[f.mu] == lattice::boundary::open);
}

/// What of a plan's options says whether there can be such a plan at all.
struct width_check {
    std::string who; ///< "halo 'name': "
    ghost_widths widths;
    std::array<lattice::boundary, lattice::dimensions> boundaries;
    bool self_exchange = false;
};
/// Refuses what can't be exchanged. The verdict is the same on every rank.
/// Err: input_error with the numbers.
void check(const width_check& plan, const lattice::decomposition& cut, int ranks);

/// The part of a plan's shape that every layout has, as text to compare.
std::string shape_text(const lattice::decomposition& cut, const ghost_widths& widths,
                       const std::array<lattice::boundary, lattice::dimensions>& boundaries);

} // namespace halocline::halo
