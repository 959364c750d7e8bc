// SPDX-License-Identifier: Apache-2.0
// The loops of a star stencil, over the sites that need no ghosts and over the others.
#pragma once

#include <halocline/halo/detail/star_table.hpp>
#include <halocline/halo/detail/team_share.hpp>
#include <halocline/halo/neighbourhood.hpp>
#include <halocline/halo/sequential.hpp>
#include <halocline/lattice/geometry.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace halocline::halo {

/// Calls a kernel with the neighbourhood of each site. Lifetime: refers to its table.
template <class T, star Star>
class star_loops {
    static constexpr int radius = Star.radius, components = Star.components;
    using neighbours = neighbourhood<T, Star>;
    using run = typename neighbours::run;

  public:
    /// Where values are: indexed by star_table::place::source.
    using sources = std::array<const T*, 1 + lattice::faces>;

    explicit star_loops(const star_table& table) : table_(table) {}

    // Functions of their own, which is up to a sixth faster than inlined (g++ 12).
    /// A member's rows of the interior of a field with these values.
    template <class Kernel>
    [[gnu::noinline]] void interior(const T* values, Kernel& kernel, team t) const;
    /// Its part of all other sites.
    template <class Kernel>
    [[gnu::noinline]] void boundary(const sources& from, Kernel& kernel, team t) const;

  private:
    template <class Kernel>
    static void visit(const run& r, std::int64_t first, std::int64_t last, Kernel& kernel) {
        detail::visit_sites(first, last, kernel, [&r](std::int64_t i) { return neighbours(r, i); });
    }
    /// Visits several rows of a run that contain their own neighbours in x, with a loop nest that changes no pointer
    /// and knows those neighbours at compile time. Short rows need that.
    template <class Kernel>
    static void visit_rows(const run& r, std::int64_t first, std::int64_t sites, std::int64_t rows,
                           std::int64_t distance, Kernel& kernel) {
        run fixed = r; // a copy that nothing else refers to: its pointers can stay in registers
        for (int k = -radius; k <= radius; ++k) fixed.near[0][k + radius] = fixed.here + k * components;
        for (; rows > 0; --rows, first += distance) visit(fixed, first, first + sites, kernel);
    }

    /// The sites at position `position` in x of these rows of a block.
    template <class Kernel>
    void visit_column(run r, const sources& from, int position, team_share rows, Kernel& kernel) const;

    const star_table& table_;
};

template <class T, star Star>
template <class Kernel>
void star_loops<T, Star>::interior(const T* values, Kernel& kernel, team t) const {
    const lattice::coordinate& e = table_.extents();
    // Sites with all x neighbours in their row; those before and after them reach across the wrap, if x has one.
    const int first = std::min(radius, e[0]), last = std::max(first, e[0] - radius);
    const bool wraps = table_.interior_first(0) == 0;
    run r;
    const auto place = [&](int mu, int position) {
        for (int k = -radius; k <= radius; ++k)
            r.near[mu][k + radius] = r.here + table_.step(mu, position, k) * components;
    };
    const int y_first = table_.interior_first(1), rows = table_.interior_last(1) - y_first;
    const std::int64_t planes = std::int64_t{table_.interior_last(3) - table_.interior_first(3)} *
                                (table_.interior_last(2) - table_.interior_first(2));
    const team_share mine = share_of(planes * rows, t);
    std::int64_t before = 0; // rows in the planes before this one
    lattice::coordinate x{};
    for (x[3] = table_.interior_first(3); x[3] < table_.interior_last(3); ++x[3])
        for (x[2] = table_.interior_first(2); x[2] < table_.interior_last(2); ++x[2], before += rows) {
            const team_share part = mine.among(before, rows);
            const int y_end = y_first + static_cast<int>(part.last);
            // One run for the whole plane of x and y: within it only neighbours in y change, in the rows near a wrap.
            r.first = lattice::lexicographic_index(x, e);
            r.here = values + r.first * components;
            place(3, x[3]);
            place(2, x[2]);
            for (int y = y_first + static_cast<int>(part.first), end = y; y < y_end; y = end) {
                end = y < radius || y >= e[1] - radius ? y + 1 : std::min(y_end, e[1] - radius);
                place(1, y);
                visit_rows(r, std::int64_t{y} * e[0] + first, last - first, end - y, e[0], kernel);
                if (!wraps) continue;
                for (int i = 0; i < e[0]; i = i + 1 == first ? last : i + 1) {
                    place(0, i);
                    for (std::int64_t row = y; row < end; ++row) kernel(neighbours(r, row * e[0] + i));
                }
            }
        }
}

template <class T, star Star>
template <class Kernel>
void star_loops<T, Star>::boundary(const sources& from, Kernel& kernel, team t) const {
    const int extent = table_.extents()[0], first = std::min(radius, extent), last = std::max(first, extent - radius);
    const team_share mine = share_of(table_.boundary_sites(), t);
    std::int64_t before = 0; // sites in the blocks before this one
    run r;
    for (std::size_t b = 0; b < table_.boundary().size(); ++b) {
        const star_table::block& block = table_.boundary()[b];
        team_share rows{0, block.rows};
        if (t.size > 1) {
            const int row_sites = table_.row_sites(block);
            rows = mine.among(before, block.rows, row_sites);
            before += std::int64_t{block.rows} * row_sites;
            if (rows.first == rows.last) continue;
        }
        r.first = block.first;
        r.here = from[0] + r.first * components;
        const star_table::place* place = table_.places(b);
        for (int mu = 1; mu < lattice::dimensions; ++mu)
            for (const T*& neighbour : r.near[mu]) {
                neighbour = from[place->source] + std::int64_t{place->site} * components;
                ++place;
            }
        if (block.whole)
            visit_rows(r, rows.first * extent + first, last - first, rows.last - rows.first, extent, kernel);
        for (int i = 0; i < extent; i = i + 1 == first ? last : i + 1) visit_column(r, from, i, rows, kernel);
    }
}

template <class T, star Star>
template <class Kernel>
void star_loops<T, Star>::visit_column(run r, const sources& from, int position, team_share rows,
                                       Kernel& kernel) const {
    const int extent = table_.extents()[0];
    // From row to row, the ghosts behind a face in x lie closer together than the sites.
    const std::int64_t row_number = r.first / extent;
    std::array<std::int64_t, 2 * radius + 1> closer{};
    for (int k = -radius; k <= radius; ++k) {
        r.near[0][k + radius] = r.here + k * components;
        if (0 <= position + k && position + k < extent) continue;
        const star_table::place p = table_.beside_row(row_number, position, k);
        if (p.source != 0) closer[k + radius] = std::int64_t{radius - extent} * components;
        r.near[0][k + radius] =
            from[p.source] + (std::int64_t{p.site} - position) * components + rows.first * closer[k + radius];
    }
    for (std::int64_t row = rows.first; row < rows.last; ++row) {
        kernel(neighbours(r, row * extent + position));
        for (int k = 0; k <= 2 * radius; ++k) r.near[0][k] += closer[k];
    }
}

} // namespace halocline::halo
