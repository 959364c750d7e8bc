// SPDX-License-Identifier: Apache-2.0
// What a kernel of a star stencil sees: one site and its neighbours along each dimension.
#pragma once

#include <halocline/lattice/geometry.hpp>

#include <array>
#include <cstdint>

namespace halocline::halo {

/// A star stencil: it reaches up to `radius` steps along each dimension, on fields with `components` components per
/// site. A compile-time constant, so that the compiler turns it into one straight loop over x.
struct star {
    int radius = 1;
    int components = 1;
};

/// A kernel's view of one site: its values, and those of its neighbours along each dimension.
template <class T, star Star>
class neighbourhood {
  public:
    /// Consecutive sites along x, and where the neighbours of the first one are: near[mu][k + radius].
    struct run {
        std::int64_t first = 0; ///< local lexicographic index
        const T* here = nullptr;
        std::array<std::array<const T*, 2 * Star.radius + 1>, lattice::dimensions> near{};
    };
    /// Site i of a run.
    neighbourhood(const run& r, std::int64_t i) : run_(r), i_(i) {}

    /// Local lexicographic index of this site.
    [[nodiscard]] std::int64_t index() const { return run_.first + i_; }
    /// Component c of this site.
    [[nodiscard]] T here(int c = 0) const { return run_.here[i_ * Star.components + c]; }
    /// Component c of the site k steps along mu.  Pre: 1 <= |k| <= radius.
    [[nodiscard]] T at(int mu, int k, int c = 0) const {
        return run_.near[mu][k + Star.radius][i_ * Star.components + c];
    }

  private:
    const run& run_;
    std::int64_t i_;
};

} // namespace halocline::halo
