// SPDX-License-Identifier: Apache-2.0
// Where a star stencil finds the neighbours of the sites that have some outside their row or their box.
#pragma once

#include <halocline/lattice/geometry.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace halocline::halo {

/// Where the star neighbours of a local box are. Depends on extents, not on fields; made once.
/// The box `leaves` itself in a dimension if its neighbours there lie behind faces; otherwise it closes on itself.
class star_table {
  public:
    /// A site of source 0, the field itself, or of source 1 + f.index(): the layers behind face f, in message order.
    struct place {
        std::int32_t source = 0;
        std::int32_t site = 0;
    };
    /// Rows along x, adjacent in y, whose neighbours in y, z and t are rows too, at equal distances.
    struct block {
        std::int32_t first = 0; ///< the site of the first row at x = 0
        std::int32_t rows = 0;
        /// False: only the ends of the rows belong to the boundary, because of their neighbours in x.
        bool whole = false;
    };

    star_table(const lattice::coordinate& extents, const std::array<bool, lattice::dimensions>& leaves, int radius);

    [[nodiscard]] const lattice::coordinate& extents() const { return extents_; }
    /// Interior: sites at positions [interior_first, interior_last) in every dimension.
    [[nodiscard]] int interior_first(int mu) const { return leaves_[mu] ? std::min(radius_, extents_[mu]) : 0; }
    [[nodiscard]] int interior_last(int mu) const {
        return leaves_[mu] ? std::max(extents_[mu] - radius_, interior_first(mu)) : extents_[mu];
    }
    /// Distance in sites from position p in mu to the one k steps further, across the wrap.  Pre: p is interior in mu.
    [[nodiscard]] std::int64_t step(int mu, int p, int k) const {
        const std::size_t here = static_cast<std::size_t>(p) * (2 * static_cast<std::size_t>(radius_) + 1);
        return steps_[mu][here + static_cast<std::size_t>(k + radius_)];
    }

    /// All other sites.
    [[nodiscard]] const std::vector<block>& boundary() const { return boundary_; }
    /// How many sites of each row of a block belong to the boundary.
    [[nodiscard]] int row_sites(const block& b) const {
        return b.whole ? extents_[0] : std::min(extents_[0], 2 * radius_);
    }
    [[nodiscard]] std::int64_t boundary_sites() const { return boundary_sites_; }
    /// Neighbours of the first site of boundary()[b]: by mu = y, z, t, then k = -radius … radius (0 is the site
    /// itself).
    [[nodiscard]] const place* places(std::size_t b) const { return &places_[b * places_per_block()]; }
    /// The neighbour k steps along x of the site at position x in a row that is preceded by `row` others.
    /// Pre: it lies outside the row.
    [[nodiscard]] place beside_row(std::int64_t row, int x, int k) const {
        if (!leaves_[0]) return {0, static_cast<std::int32_t>(row * extents_[0] + x + step(0, x, k))};
        const bool below = x + k < 0;
        const lattice::face f{0, below ? lattice::side::low : lattice::side::high};
        const int layer = below ? x + k + radius_ : x + k - extents_[0];
        return {1 + f.index(), static_cast<std::int32_t>(row * radius_ + layer)};
    }

  private:
    [[nodiscard]] std::size_t places_per_block() const { return (lattice::dimensions - 1) * (2 * radius_ + 1); }
    [[nodiscard]] place neighbour(lattice::coordinate x, int mu, int k) const;
    void add_boundary(const lattice::coordinate& first, int rows, bool whole);

    // steps_[mu] holds 2 radius_ + 1 numbers per position in mu, places_ holds places_per_block() per block of
    // boundary_. A row that is in no block, or in one that is not `whole`, is interior in y, z and t.
    lattice::coordinate extents_{};
    std::array<bool, lattice::dimensions> leaves_{};
    int radius_ = 1;
    std::array<std::vector<std::int64_t>, lattice::dimensions> steps_;
    std::vector<block> boundary_;
    std::int64_t boundary_sites_ = 0;
    std::vector<place> places_;
};

} // namespace halocline::halo
