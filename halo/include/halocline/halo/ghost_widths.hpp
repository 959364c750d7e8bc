// SPDX-License-Identifier: Apache-2.0
// The number of ghost layers of a box, per dimension and side.
#pragma once

#include <halocline/lattice/geometry.hpp>

namespace halocline::halo {

using lattice::face;

/// Ghost layers per dimension and side: low[mu] layers behind the low face, high[mu] behind the high face. Default: one
/// layer everywhere.
struct ghost_widths {
    lattice::coordinate low{1, 1, 1, 1};
    lattice::coordinate high{1, 1, 1, 1};
    friend bool operator==(const ghost_widths&, const ghost_widths&) = default;

    /// Layers behind face f.
    [[nodiscard]] constexpr int behind(face f) const { return f.end == lattice::side::low ? low[f.mu] : high[f.mu]; }
};

} // namespace halocline::halo
