// SPDX-License-Identifier: Apache-2.0
// Random plans: what is drawn of them, the same on every rank that draws from the same generator state.
// random_exchanges.hpp makes and drives them.
#pragma once

#include "padded_oracle.hpp"

#include <halocline/halo/packer.hpp>

#include <algorithm>

namespace halocline_test {

/// True in one of n cases.
inline bool one_in(std::mt19937& g, int n) { return drawn(g, 1, n) == 1; }
template <class T, std::size_t N>
T one_of(std::mt19937& g, const std::array<T, N>& choices) {
    return choices[static_cast<std::size_t>(drawn(g, 0, static_cast<int>(N) - 1))];
}

/// Lexicographic in half of the cases.
inline std::vector<int> random_rank_order(std::mt19937& g, int ranks) {
    std::vector<int> order;
    if (one_in(g, 2)) return order;
    for (int rank = 0; rank < ranks; ++rank) order.insert(order.begin() + drawn(g, 0, rank), rank);
    return order;
}

/// A cut whose boxes consist of whole blocks.
struct random_cut {
    lattice::decomposition cut;
    coordinate block{1, 1, 1, 1};
    coordinate least{};   ///< extents of the thinnest boxes
    coordinate largest{}; ///< of the thickest ones
};

/// Boxes of 1 to 4, of up to 8, with one or two dimensions of up to 24; large ones for messages of many KiB. Three of
/// four are uneven: each part of a dimension has an extent of its own.
inline random_cut draw_cut(std::mt19937& g, int ranks, bool large) {
    const coordinate grid = random_rank_grid(g, ranks);
    const int size = large ? 9 : drawn(g, 0, 9);
    const int most_sites = large ? 8192 : std::min(size < 8 ? 600 : 2000, 8000 / ranks);
    std::array<bool, dimensions> is_long{};
    for (int n = size >= 8 ? drawn(g, 1, 2) : 0; n > 0; --n) is_long[drawn(g, 0, 3)] = true;
    const bool even = one_in(g, 4);
    random_cut made{.cut = lattice::decomposition::even({1, 1, 1, 1}, {1, 1, 1, 1})};
    std::array<std::vector<int>, dimensions> extents;
    for (int mu = 0; mu < dimensions; ++mu) {
        made.block[mu] = one_in(g, 4) ? 2 : 1;
        const int low = large && is_long[mu] ? 4 : 1, high = is_long[mu] ? 24 / made.block[mu] : size < 4 ? 4 : 8;
        for (int i = 0; i < grid[mu]; ++i)
            extents[mu].push_back(even && i > 0 ? extents[mu][0] : made.block[mu] * drawn(g, low, high));
    }
    const auto most = [&](int mu) { return *std::max_element(extents[mu].begin(), extents[mu].end()); };
    while (lattice::volume({most(0), most(1), most(2), most(3)}) > most_sites) {
        const int mu = std::max({0, 1, 2, 3}, [&](int a, int b) { return most(a) < most(b); });
        for (int& extent : extents[mu]) extent = std::max(made.block[mu], extent / 2 / made.block[mu] * made.block[mu]);
    }
    coordinate global{};
    std::array<std::vector<int>, dimensions> cuts;
    for (int mu = 0; mu < dimensions; ++mu) {
        cuts[mu].push_back(0);
        for (const int extent : extents[mu]) cuts[mu].push_back(cuts[mu].back() + extent);
        global[mu] = cuts[mu].back();
        made.least[mu] = *std::min_element(extents[mu].begin(), extents[mu].end());
        made.largest[mu] = most(mu);
    }
    made.cut = lattice::decomposition(global, cuts).with_rank_order(random_rank_order(g, ranks));
    return made;
}

/// One layer everywhere in a quarter of the cases; else 0 to 3 on each side, but no more than the thinnest box has.
inline halo::ghost_widths random_widths(std::mt19937& g, const coordinate& least, int most, bool at_least_one) {
    halo::ghost_widths widths;
    if (one_in(g, 4)) return widths;
    for (int mu = 0; mu < dimensions; ++mu)
        for (int* const width : {&widths.low[mu], &widths.high[mu]})
            *width = drawn(g, at_least_one ? 1 : 0, std::min(most, least[mu]));
    return widths;
}

template <class Options>
void draw_boundaries_and_selection(std::mt19937& g, Options& o) {
    for (lattice::boundary& b : o.boundaries) b = static_cast<lattice::boundary>(drawn(g, 0, 2));
    switch (drawn(g, 0, 5)) {
    case 0: o.parity = 0; break;
    case 1: o.parity = 1; break;
    case 2: o.select = [](const coordinate& x) { return (x[0] / 2 + x[1] / 2 + x[2] / 2 + x[3] / 2) % 2 == 1; }; break;
    default: break;
    }
}

/// One large plan in fifty: boxes of thousands of sites, up to 1 KiB each, so that messages have several blocks, lines
/// are claimed in parts, and caches overflow.
inline bool draw_large(std::mt19937& g) { return one_in(g, 50); }
/// Components of 8 bytes, up to 1 KiB of them, so that no field of a rank is much larger than a MiB.
inline int large_components(std::mt19937& g, const random_cut& c) {
    return drawn(g, 16, std::clamp(static_cast<int>(131'072 / lattice::volume(c.largest)), 16, 128));
}
inline int random_components(std::mt19937& g, const random_cut& c, bool large) {
    if (large) return large_components(g, c);
    return lattice::volume(c.largest) < 200 && one_in(g, 4) ? one_of(g, std::array{12, 18, 24}) : drawn(g, 1, 7);
}

inline std::string text_of(const lattice::decomposition& cut, const halo::ghost_widths& widths) {
    std::string text = ", cuts";
    for (int mu = 0; mu < dimensions; ++mu)
        for (const int at : cut.cuts(mu)) text += (at == 0 ? " 0" : ".") + (at == 0 ? "" : std::to_string(at));
    for (std::size_t i = 0; i < cut.rank_order().size(); ++i)
        text += (i == 0 ? ", rank order " : ".") + std::to_string(cut.rank_order()[i]);
    return text + ", low " + lattice::to_string(widths.low) + " high " + lattice::to_string(widths.high);
}
template <class Options>
std::string text_of_selection(const Options& o) {
    std::string text;
    for (const lattice::boundary b : o.boundaries) text += b == lattice::boundary::open ? " open" : " wraps";
    if (o.parity) text += " parity " + std::to_string(*o.parity);
    return text + (o.select ? " selected" : "");
}

/// What happens to values on their way to a field with ghosts.
inline std::string text_of_values(const shell_options& o) {
    std::string text;
    if (o.format != halo::message_format::as_stored) {
        text += ", " + std::string(to_string(o.format)) + " of ";
        text += (o.scale == 1 ? "" : o.scale < 1 ? "1/8 " : "8 ") + std::string("value");
    }
    const phases twists = twists_of(o);
    if (!has_phase(twists)) return text;
    text += ", phases";
    for (const std::complex<double>& p : twists)
        text +=
            " " + std::to_string(static_cast<int>(p.real())) + "+" + std::to_string(static_cast<int>(p.imag())) + "i";
    return text;
}

/// A plan with ghosts of its own: odd, uneven and extent-1 boxes, widths 0 to 3 per side, every boundary, parities and
/// selections, three site orders with 1 to 16 lanes, 1 to 3 fields of components of 1, 4 or 8 bytes.
struct halo_case {
    random_cut place;
    lattice::decomposition cut; ///< place.cut
    halo::plan_options options;
    int order = 0; ///< 0: lexicographic, 1: even/odd, 2: blocked
    int lane_width = 1;
    int components = 1;
    int component_bytes = 8;
    int prepared = 0;     ///< the order that the plan is made for: 0: none, 1: the fields', 2: another one
    bool in_slab = false; ///< the fields, where receivers can read them
    bool large = false;
    std::string text;
};

inline std::string text_of_order(int order, int lane_width) {
    return order == 0   ? "lexicographic"
           : order == 1 ? "even/odd"
                        : "blocked in " + std::to_string(lane_width) + " lanes";
}

inline halo_case random_case(std::mt19937& g, int ranks) {
    const bool large = draw_large(g);
    const random_cut place = draw_cut(g, ranks, large);
    halo_case c{.place = place, .cut = place.cut, .options = {}, .large = large, .text = {}};
    halo::plan_options& o = c.options;
    o.self_exchange = large || one_in(g, 3);
    o.widths = random_widths(g, place.least, 3, large);
    draw_boundaries_and_selection(g, o);
    o.fields = one_in(g, 3) ? drawn(g, 2, 3) : 1;
    o.path = one_of(g, std::array{halo::path::automatic, halo::path::direct, halo::path::streamed, halo::path::joint});
    o.checks = one_of(g, std::array{check_level::off, check_level::light, check_level::normal, check_level::comm});
    o.checksums = one_in(g, 4);
    c.order = drawn(g, 0, 2);
    c.lane_width = one_of(g, std::array{1, 2, 4, 8, 16});
    c.components = random_components(g, place, large);
    c.component_bytes = one_of(g, std::array{1, 4, 4, 8, 8});
    c.prepared = drawn(g, 0, 2);
    c.in_slab = !one_in(g, 4);
    if (o.path == halo::path::joint && !one_in(g, 3)) { // receivers may copy what they can read and know the order of
        c.prepared = 1;
        c.in_slab = true;
        o.checksums = false;
    }
    c.text = "plan of " + std::to_string(o.fields) + " x " + std::to_string(c.components) + " x " +
             std::to_string(c.component_bytes) + " B, " + text_of_order(c.order, c.lane_width) + ", made for " +
             (c.prepared == 0   ? "no"
              : c.prepared == 1 ? "this"
                                : "another") +
             " order, " + (c.in_slab ? "in slabs" : "no slab") + ", path " + std::string(to_string(o.path)) +
             ", checks " + std::string(to_string(o.checks)) + (o.checksums ? ", checksums" : "") +
             (o.self_exchange ? ", self-exchange" : "") + text_of(c.cut, o.widths) + text_of_selection(o);
    return c;
}

/// A plan whose messages a packer fills: projections of blocks, phases, fewer bits. All coefficients are powers of i
/// and all values small whole numbers, so that nothing is ever rounded.
struct packed_case {
    halo_case halo; ///< component_bytes: 4 or 8
    halo::packer_options packing;
    int blocks = 1;
};

inline std::complex<double> power_of_i(int n) {
    return std::array<std::complex<double>, 4>{{{1, 0}, {0, 1}, {-1, 0}, {0, -1}}}[static_cast<std::size_t>(n & 3)];
}

inline packed_case random_packed_case(std::mt19937& g, int ranks) {
    packed_case c{.halo = random_case(g, ranks), .packing = {}};
    c.halo.component_bytes = one_in(g, 3) ? 8 : 4;
    const int block_reals = one_of(g, std::array{1, 2, 3, 6});
    const int turn = block_reals % 2 == 0 ? 1 : 2; // blocks of an odd number of reals have real coefficients only
    c.blocks = drawn(g, 1, 4);
    halo::packer_options& p = c.packing;
    c.halo.components = p.components = c.blocks * block_reals;
    if (!one_in(g, 3)) {
        const int rows = drawn(g, 1, c.blocks);
        for (halo::block_map& map : p.projections) {
            map.block_reals = block_reals;
            for (int r = 0; r < rows; ++r) {
                auto& row = map.rows.emplace_back();
                for (int terms = drawn(g, 1, 2); terms > 0; --terms)
                    row.push_back({drawn(g, 0, c.blocks - 1), power_of_i(turn * drawn(g, 0, 3))});
            }
        }
    }
    if (one_in(g, 2))
        for (std::complex<double>& phase : p.phases)
            phase = power_of_i((p.components % 2 == 0 ? turn : 2) * drawn(g, 0, 3));
    if (c.halo.component_bytes == 4) {
        p.format = one_of(
            g, std::array{halo::message_format::as_stored, halo::message_format::half, halo::message_format::bfloat16});
        if (p.format != halo::message_format::as_stored) p.scale = one_of(g, std::array{0.25, 1., 1., 8.});
    }
    c.halo.text = "packed " + std::string(to_string(p.format)) + ", " + std::to_string(c.blocks) + " blocks of " +
                  std::to_string(block_reals) + ", " + std::to_string(p.projections[0].rows.size()) +
                  " rows of a projection; " + c.halo.text;
    return c;
}

/// A plan of fields with ghosts: padded and appended, faces or all ghosts, corners by each route, 1 to 4 used
/// dimensions, widths 0 to 3 per side, 1 to 3 fields in 1 or 2 bindings, in the slab or not, source and destination the
/// same or not; a third of them with phases of twisted boundaries, a third of those of float in another format, a
/// quarter in reverse, too.
inline padded_case random_padded_case(std::mt19937& g, int ranks, bool may_be_direct = true) {
    const bool large = draw_large(g);
    const random_cut place = draw_cut(g, ranks, large);
    shell_options o;
    o.widths = random_widths(g, place.least, large ? 2 : 3, false);
    const int used = one_in(g, 2) ? dimensions : drawn(g, large ? 3 : 1, 3); // dimensions with a width
    for (int mu = used; mu < dimensions; ++mu) o.widths.low[mu] = o.widths.high[mu] = 0;
    const int most_sites = large ? 20'000 : std::min(2500, 16'000 / ranks);
    const lattice::box largest{{}, place.largest};
    while (halo::grown(largest, o.widths).volume() > most_sites) {
        int* widest = &o.widths.low[0];
        for (int mu = 0; mu < dimensions; ++mu)
            for (int* const width : {&o.widths.low[mu], &o.widths.high[mu]})
                if (*width > *widest) widest = width;
        --*widest;
    }
    draw_boundaries_and_selection(g, o);
    o.layout = static_cast<halo::ghost_layout>(drawn(g, 0, 1));
    o.shape = one_in(g, 3) ? halo::shell::faces : halo::shell::box;
    o.corners = static_cast<halo::corner_route>(drawn(g, 0, 2));
    o.reverse = one_in(g, large ? 2 : 4);
    o.checks = one_of(g, std::array{check_level::off, check_level::light, check_level::normal, check_level::comm});
    padded_case c{.cut = place.cut, .options = o, .components = {}, .text = {}};
    c.order = drawn(g, 0, 2);
    c.lane_width = one_of(g, std::array{1, 2, 4, 8, 16});
    for (int f = drawn(g, 1, 3); f > 0; --f) c.components.push_back(random_components(g, place, large));
    c.bindings = drawn(g, 1, 2);
    c.apart = one_in(g, 4);
    if (c.apart && o.corners == halo::corner_route::by_dimension) o.corners = halo::corner_route::at_once;
    c.options.corners = o.corners; // only fields that are their own destinations are forwarded
    c.in_slab = large ? 1 : drawn(g, 0, 2);
    c.component_bytes = one_of(g, std::array{4, 8});
    const bool pairs = std::ranges::none_of(c.components, [](int n) { return n % 2 == 1; });
    if (one_in(g, 3))
        c.options.phases = random_phases(g, pairs);
    else
        std::ranges::replace(c.options.boundaries, lattice::boundary::antiperiodic, lattice::boundary::periodic);
    const bool rounded = c.component_bytes == 4 && one_in(g, 3);
    if (rounded) {
        c.options.format = one_of(g, std::array{halo::message_format::half, halo::message_format::bfloat16});
        c.options.scale = one_of(g, std::array{0.125, 1., 1., 8.});
    }
    // direct, streamed and joint can only be asked for where they are possible
    const halo::path way = one_of(g, std::array{halo::path::automatic, halo::path::packed, halo::path::direct,
                                                halo::path::streamed, halo::path::joint});
    const bool sealed = o.checks == check_level::comm;
    const bool possible = way == halo::path::packed || (c.in_slab == 1 && may_be_direct && !rounded && !sealed);
    c.options.path = possible ? way : halo::path::automatic;
    c.text = std::string(to_string(o.layout)) +
             (o.shape == halo::shell::box ? ", box, corners " + std::string(to_string(o.corners)) : ", faces") +
             ", fields of " + std::to_string(c.component_bytes) + " B";
    for (const int n : c.components) c.text += " " + std::to_string(n);
    c.text += ", bindings " + std::to_string(c.bindings) + (c.apart ? " from others" : "") + ", " +
              text_of_order(c.order, c.lane_width) + ", " +
              (c.in_slab == 0   ? "no slab"
               : c.in_slab == 1 ? "in slabs"
                                : "odd ranks in slabs") +
              ", path " + std::string(to_string(c.options.path)) + text_of_values(c.options) +
              (o.reverse ? ", reverse" : "") + text_of(c.cut, o.widths) + text_of_selection(o);
    return c;
}

} // namespace halocline_test
