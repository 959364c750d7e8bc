// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/stencil.hpp>

namespace halocline::halo {

using lattice::coordinate;
using lattice::dimensions;
using lattice::side;

std::array<bool, dimensions> leaving(const lattice::decomposition& cut, const stencil_options& options) {
    std::array<bool, dimensions> leaves{};
    for (int mu = 0; mu < dimensions; ++mu) {
        if (options.boundaries[mu] == lattice::boundary::antiperiodic)
            throw input_error("stencil '" + options.name + "': antiperiodic in " + "xyzt"[mu] +
                              ": must be periodic or open; a sign belongs into the kernel");
        leaves[mu] =
            cut.rank_grid()[mu] > 1 || options.boundaries[mu] == lattice::boundary::open || options.self_exchange;
    }
    return leaves;
}

star_table::star_table(const coordinate& extents, const std::array<bool, dimensions>& leaves, int radius)
    : extents_(extents), leaves_(leaves), radius_(radius) {
    std::int64_t stride = 1;
    for (int mu = 0; mu < dimensions; ++mu) {
        const int n = extents[mu];
        for (int p = 0; p < n; ++p)
            for (int k = -radius; k <= radius; ++k) {
                const int wrapped = ((p + k) % n + n) % n;
                steps_[mu].push_back(stride * (wrapped - p));
            }
        stride *= n;
    }

    // Rows whose neighbours in y are all adjacent form one block; every other row is a block of its own.
    const int first = std::min(radius, extents[1]), last = std::max(first, extents[1] - radius);
    coordinate x{};
    for (x[3] = 0; x[3] < extents[3]; ++x[3])
        for (x[2] = 0; x[2] < extents[2]; ++x[2])
            for (int end = x[1] = 0; end < extents[1]; x[1] = end) {
                end = x[1] == first && first < last ? last : x[1] + 1;
                bool interior = true;
                for (int mu = 1; mu < dimensions; ++mu)
                    interior = interior && interior_first(mu) <= x[mu] && x[mu] < interior_last(mu);
                if (!interior || leaves[0]) add_boundary(x, end - x[1], !interior);
            }
}

void star_table::add_boundary(const coordinate& first, int rows, bool whole) {
    boundary_.push_back({static_cast<std::int32_t>(lattice::lexicographic_index(first, extents_)), rows, whole});
    for (int mu = 1; mu < dimensions; ++mu)
        for (int k = -radius_; k <= radius_; ++k) places_.push_back(neighbour(first, mu, k));
}

star_table::place star_table::neighbour(coordinate x, int mu, int k) const {
    const int p = x[mu] + k;
    const bool below = p < 0, inside = !below && p < extents_[mu];
    if (inside || !leaves_[mu]) {
        const std::int64_t here = lattice::lexicographic_index(x, extents_);
        return {0, static_cast<std::int32_t>(here + step(mu, x[mu], k))};
    }
    const lattice::face f{mu, below ? side::low : side::high};
    coordinate layers = extents_;
    layers[mu] = radius_;
    x[mu] = below ? p + radius_ : p - extents_[mu];
    return {1 + f.index(), static_cast<std::int32_t>(lattice::lexicographic_index(x, layers))};
}

} // namespace halocline::halo
