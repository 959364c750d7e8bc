// SPDX-License-Identifier: Apache-2.0
// What packers and unpackers of a plan check alike.
#pragma once

#include "format_checks.hpp"

#include <halocline/base/error.hpp>
#include <halocline/halo/block_map.hpp>
#include <halocline/halo/boundary_phases.hpp>
#include <halocline/halo/plan.hpp>
#include <halocline/lattice/site_order.hpp>

#include <algorithm>
#include <array>
#include <complex>
#include <memory>
#include <string>

namespace halocline::halo {

/// Is there one for any face?
inline bool has_maps(const std::array<block_map, lattice::faces>& maps) {
    return std::ranges::any_of(maps, [](const block_map& m) { return !m.empty(); });
}

/// Can a message through face f of some rank cross the edge of the lattice?
inline bool wraps_anywhere(const plan& p, face f) { return p.options().boundaries[f.mu] != lattice::boundary::open; }

/// Err: input_error, beginning with `who`: a phase that is not finite; a site of `most` reals, in a message or a field,
///      that must be converted and has no room in a chunk.
inline void check_chunk(const std::string& who, int most, message_format format,
                        const std::array<block_map, lattice::faces>& maps, const boundary_phases& phases) {
    check_phases_finite(who, phases);
    const bool copies = format == message_format::as_stored && !has_maps(maps) &&
                        std::ranges::all_of(phases, [](std::complex<double> phase) { return phase == 1.0; });
    if (!copies && most > chunk_reals)
        throw input_error(who + std::to_string(most) +
                          " reals per site: a projection, a phase or a change of format takes up to " +
                          std::to_string(chunk_reals));
}

/// The site order for which packers and unpackers of a plan are made: this one, or if null the plan's.
inline std::shared_ptr<const lattice::site_order> order_for(const plan& p,
                                                            std::shared_ptr<const lattice::site_order> order) {
    if (!order) order = p.options().order;
    return order ? order : lattice::site_order::lexicographic(p.cut().local_box(p.job().rank()).extents);
}

/// Checks common to packers and unpackers.  Err: input_error, beginning with `who`: what check_format() refuses, a site
/// order of another box than the local one.
inline void check_format_and_box(const std::string& who, message_format format, double scale, const plan& p,
                                 const lattice::site_order& order) {
    check_format(who, format, scale);
    const int rank = p.job().rank();
    const lattice::coordinate local = p.cut().local_box(rank).extents;
    if (order.extents() != local)
        throw input_error(who + "the site order is of a box of " + lattice::to_string(order.extents()) +
                          ", the local box of rank " + std::to_string(rank) + " is " + lattice::to_string(local));
}

} // namespace halocline::halo
