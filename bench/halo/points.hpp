// SPDX-License-Identifier: Apache-2.0
// The points that bench/halo measures, the important ones first: a run that is short of time leaves out the last.
#pragma once

#include "halo/box_faces.hpp"

#include <string>
#include <vector>

namespace halocline::bench {

struct point_choice {
    std::vector<std::string> extents{"4", "8", "12", "16", "24.12.12.12"}, cuts{"t", "x"},
        layouts{"appended", "padded"};
    std::vector<int> bytes{};   ///< per site; if bytes and vectors are empty: 96 and 192
    std::vector<int> vectors{}; ///< of coarse lattices: boxes of 2^4 and 4^4 sites with 24 bytes per vector
};

/// All combinations, cut over `ranks`: two along each dimension of a cut, and all remaining ones along its last; a
/// single rank exchanges with itself. Spinors before coarse sites; then by bytes, layouts, cuts, extents, in the given
/// order.
/// Err: input_error, also if a point comes twice.
std::vector<point> points_of(const point_choice& choice, int ranks);

} // namespace halocline::bench
