// SPDX-License-Identifier: Apache-2.0
// What the options of plans, shells and the solver say in the same words: where a lattice is cut, and what is exchanged.
#pragma once

#include "errors.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/halo/ghost_widths.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/rank_order.hpp>

#include <optional>
#include <string>
#include <vector>

namespace halocline::c {

inline lattice::coordinate coordinate_of(const int (&x)[4]) { return {x[0], x[1], x[2], x[3]}; }

/// This cut with the owners that a caller asks for.
/// Err: input_error: a cut for another number of ranks than the job has; both orders are asked for, or no permutation of
///      the ranks.
template <class Options>
lattice::decomposition with_owners(const comm::job& j, const lattice::decomposition& cut, const Options& given) {
    if (cut.ranks() != j.ranks())
        throw input_error("rank_grid " + lattice::to_string(cut.rank_grid()) + " is of " + std::to_string(cut.ranks()) +
                          " ranks; the job has " + std::to_string(j.ranks()));
    if (given.order_by_nodes != 0 && given.rank_order != nullptr)
        throw input_error("order_by_nodes and rank_order are both set: at most one is expected");
    if (given.rank_order != nullptr)
        return cut.with_rank_order(std::vector<int>(given.rank_order, given.rank_order + cut.ranks()));
    return given.order_by_nodes != 0 ? cut.with_rank_order(lattice::rank_order_by_nodes(cut, j.nodes())) : cut;
}

/// The cut that a plan or a shell is made for.  Err: input_error.
template <class Options>
lattice::decomposition cut_of(const comm::job& j, const Options& given) {
    return with_owners(j, lattice::decomposition::even(coordinate_of(given.global), coordinate_of(given.rank_grid)),
                       given);
}

/// Err: input_error if there are none, because then members were forgotten.
template <class Options>
halo::ghost_widths widths_of(const Options& given) {
    const halo::ghost_widths widths{coordinate_of(given.width_low), coordinate_of(given.width_high)};
    constexpr lattice::coordinate none{};
    if (widths.low == none && widths.high == none)
        throw input_error("width_low and width_high are 0 in every dimension: 1 or more is expected in one at least");
    return widths;
}

template <class Options>
std::optional<int> parity_of(const Options& given) {
    if (given.parity < 0 || given.parity > 2)
        throw input_error("parity is " + std::to_string(given.parity) +
                          ": 0 (all sites), 1 (even) or 2 (odd) is expected");
    return given.parity == 0 ? std::nullopt : std::optional(given.parity - 1);
}

/// `normal`: what 0 means.  Err: input_error.
inline lattice::boundary boundary_of(int given, int mu, lattice::boundary normal) {
    switch (given) {
    case HALOCLINE_BOUNDARY_DEFAULT: return normal;
    case HALOCLINE_PERIODIC: return lattice::boundary::periodic;
    case HALOCLINE_ANTIPERIODIC: return lattice::boundary::antiperiodic;
    case HALOCLINE_OPEN: return lattice::boundary::open;
    }
    throw input_error("boundary[" + std::to_string(mu) + "] = " + std::to_string(given) + " is none of 0 to 3");
}

inline void copy_box(const lattice::box& b, int first[4], int extent[4]) {
    for (int mu = 0; mu < lattice::dimensions; ++mu) {
        first[mu] = b.origin[mu];
        extent[mu] = b.extents[mu];
    }
}

} // namespace halocline::c
