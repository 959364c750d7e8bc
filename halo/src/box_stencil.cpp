// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/box_stencil.hpp>

#include "box_layers.hpp"
#include "format_checks.hpp"

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

/// ", {0, 1} together".
std::string text_of(const std::vector<std::vector<int>>& together) {
    std::string text;
    for (const std::vector<int>& set : together) {
        for (std::size_t k = 0; k < set.size(); ++k) text += (k == 0 ? ", {" : ", ") + std::to_string(set[k]);
        text += "} together";
    }
    return text;
}

/// Err: input_error, beginning with `who`: no set of two or more of so many fields.
void check_set(const std::string& who, std::vector<int> set, int fields) {
    const std::string what = who + "together: ";
    if (set.size() < 2)
        throw input_error(what + "a set of " + std::to_string(set.size()) + ": must be 2 or more fields");
    std::ranges::sort(set);
    if (set.front() < 0 || set.back() >= fields)
        throw input_error(what + "field " + std::to_string(set.front() < 0 ? set.front() : set.back()) +
                          ": must be 0 to " + std::to_string(fields - 1));
    if (const auto twice = std::ranges::adjacent_find(set); twice != set.end())
        throw input_error(what + "field " + std::to_string(*twice) + " twice in a set");
}

} // namespace

bool is_its_own_neighbour(const box_stencil_options& o, const lattice::coordinate& global, int mu) {
    return mu > 0 && global[mu] == 1 && o.boundaries[mu] == lattice::boundary::periodic && o.phases[mu] == 1.0;
}

box_stencil_options with_widths(box_stencil_options o, const lattice::coordinate& global) {
    if (o.widths != box_stencil_options::by_extents) return o;
    o.widths = {};
    for (int mu = 0; mu < dimensions; ++mu)
        if (is_its_own_neighbour(o, global, mu)) o.widths.low[mu] = o.widths.high[mu] = 0;
    return o;
}

box_parts parts_of(const comm::job& j, const lattice::decomposition& cut, const box_stencil_options& options) {
    const std::string who = "stencil '" + options.name + "': ";
    j.agree("the fields of stencil '" + options.name + "'",
            std::to_string(options.fields) + text_of(options.together) + (options.in_place ? ", in place" : ""));
    j.collectively([&] {
        check_cut({.who = who, .widths = options.widths, .boundaries = options.boundaries, .self_exchange = true}, cut,
                  j.ranks());
        check_phases_finite(who, options.phases);
        if (options.fields < 1) throw input_error(who + std::to_string(options.fields) + " fields: must be 1 or more");
        for (const std::vector<int>& set : options.together) check_set(who, set, options.fields);
        for (int mu = 0; mu < dimensions && options.in_place; ++mu)
            if (cut.global()[mu] % 2 != 0 && options.boundaries[mu] != lattice::boundary::open &&
                options.widths.low[mu] + options.widths.high[mu] > 0)
                throw input_error(who + "in place around " + lattice::dimension_name[mu] + " of the lattice " +
                                  lattice::to_string(cut.global()) +
                                  ": parities don't alternate across the edge of an odd extent; must be even, open or "
                                  "of width 0");
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
