// SPDX-License-Identifier: Apache-2.0
// Which faces a plan exchanges, and which sites these are. Pure arithmetic on a decomposition: every rank can compute
// it for every other, so both ends of a message arrive at the same list without communication.
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

/// The box `part` with its origin relative to that of `whole`.
inline lattice::box within(const lattice::box& whole, lattice::box part) {
    for (int mu = 0; mu < lattice::dimensions; ++mu) part.origin[mu] -= whole.origin[mu];
    return part;
}

/// Those of the sites of `part` (x fastest, numbered in any way) that have the plan's parity and are selected.
/// part: global coordinates, also beyond the edges of the lattice.
template <class Options>
std::vector<std::int32_t> selected(std::vector<std::int32_t> sites, const lattice::box& part,
                                   const lattice::coordinate& global, const Options& options) {
    if (!options.parity && !options.select) return sites;
    std::vector<std::int32_t> chosen;
    for (std::size_t i = 0; i < sites.size(); ++i) {
        lattice::coordinate x = lattice::lexicographic_coordinate(static_cast<std::int64_t>(i), part.extents);
        for (int mu = 0; mu < lattice::dimensions; ++mu)
            x[mu] = ((x[mu] + part.origin[mu]) % global[mu] + global[mu]) % global[mu];
        if ((!options.parity || lattice::parity(x) == *options.parity) && (!options.select || options.select(x)))
            chosen.push_back(sites[i]);
    }
    return chosen;
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

/// Err: input_error, beginning with `who`: a box of these extents, with its ghosts, would have an extent beyond 32 bits.
void check_grown(const std::string& who, const lattice::coordinate& extents, const ghost_widths& widths);

/// The options of a plan that determine whether such a plan is possible at all.
struct width_check {
    std::string who; ///< "halo 'name': "
    ghost_widths widths;
    std::array<lattice::boundary, lattice::dimensions> boundaries;
    bool self_exchange = false;
};
/// Refuses impossible plans. The verdict is the same on every rank.
/// Err: input_error with the numbers.
void check(const width_check& plan, const lattice::decomposition& cut, int ranks);

/// The part of a plan's shape that every layout has, as text for comparison.
std::string shape_text(const lattice::decomposition& cut, const ghost_widths& widths,
                       const std::array<lattice::boundary, lattice::dimensions>& boundaries);

} // namespace halocline::halo
