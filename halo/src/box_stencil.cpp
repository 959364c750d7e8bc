// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/box_stencil.hpp>

#include "box_layers.hpp"

#include <algorithm>

namespace halocline::halo {
namespace {

using lattice::box;
using lattice::dimensions;

/// The positions [first, last) along one dimension, of n, whose neighbours along it are not ghosts filled by an
/// exchange. What lies beyond an open edge is always available.
struct range {
    int first = 0, last = 0;
};
range interior_along(const lattice::decomposition& cut, int rank, const box_stencil_options& o, int mu, int n) {
    const auto come = [&](lattice::side end) {
        const bool beyond_edge = cut.wraps(rank, {mu, end}) && o.boundaries[mu] == lattice::boundary::open;
        return beyond_edge ? 0 : o.widths.behind({mu, end});
    };
    const int first = std::min(come(lattice::side::low), n);
    return {first, std::max(n - come(lattice::side::high), first)};
}

} // namespace

box_parts parts_of(const comm::job& j, const lattice::decomposition& cut, const box_stencil_options& options) {
    const std::string who = "stencil '" + options.name + "': ";
    j.agree("the number of fields of stencil '" + options.name + "'", std::to_string(options.fields));
    j.collectively([&] {
        check_cut({.who = who, .widths = options.widths, .boundaries = options.boundaries, .self_exchange = true}, cut,
                  j.ranks());
        if (options.fields < 1) throw input_error(who + std::to_string(options.fields) + " fields: must be 1 or more");
    });

    const box local = cut.local_box(j.rank());
    box_parts parts{.interior = {options.widths.low, local.extents}, .boundary = {}};
    // From t to x, so that as little as possible is cut off at the ends of rows: such rows are short.
    for (int mu = dimensions - 1; mu >= 0; --mu) {
        const auto [first, last] = interior_along(cut, j.rank(), options, mu, local.extents[mu]);
        const auto add = [&](int from, int to) {
            box part = parts.interior;
            part.origin[mu] += from;
            part.extents[mu] = to - from;
            if (part.volume() > 0) parts.boundary.push_back(part);
        };
        add(0, first);
        add(last, local.extents[mu]);
        parts.interior.origin[mu] += first;
        parts.interior.extents[mu] = last - first;
    }
    return parts;
}

} // namespace halocline::halo
