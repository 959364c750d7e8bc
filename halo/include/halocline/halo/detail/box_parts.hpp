// SPDX-License-Identifier: Apache-2.0
// The parts into which a box stencil splits the box of a rank.
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/geometry.hpp>

#include <vector>

namespace halocline::halo {

struct box_stencil_options;

/// Splits the local box into sites whose neighbours are all owned (interior) and the rest (boundary). Disjoint boxes,
/// in coordinates of the grown box.
struct box_parts {
    lattice::box interior;
    std::vector<lattice::box> boundary;
};
/// Is what lies beyond each site along mu that site? (Not asked of x, along which a step is always to the next value.)
bool is_its_own_neighbour(const box_stencil_options& options, const lattice::coordinate& global, int mu);
/// The options with the widths that box_stencil_options::by_extents stands for.
box_stencil_options with_widths(box_stencil_options options, const lattice::coordinate& global);

/// The parts of this rank's box. Collective.
/// Err: on every rank: input_error: options that are not a valid stencil, or differ between ranks.
box_parts parts_of(const comm::job& j, const lattice::decomposition& cut, const box_stencil_options& options);

} // namespace halocline::halo
