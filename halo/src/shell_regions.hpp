// SPDX-License-Identifier: Apache-2.0
// Which sites of a field with a shell go where. Pure arithmetic on a decomposition: both ends of a transfer arrive at
// the same list without communication.
#pragma once

#include "chosen_sites.hpp"

#include <halocline/halo/shell_plan.hpp>

namespace halocline::halo {

/// Directions are numbered with x running fastest, each from -1 to +1; the box itself is in the middle.
inline constexpr int directions = 81;
lattice::coordinate direction_of(int index);
int index_of(const lattice::coordinate& direction);
/// Number of dimensions in which a direction leaves the box: 1 behind a face, 2 behind an edge, …
inline int distance(const lattice::coordinate& direction) {
    int n = 0;
    for (const int step : direction) n += step != 0;
    return n;
}

/// Does `rank` have ghosts along this direction, whether or not they are asked for (shell::box)?
bool is_filled(const lattice::decomposition& cut, int rank, const shell_options& o,
               const lattice::coordinate& direction);
/// The ghosts of `rank` along a direction, in global coordinates. In dimensions before `grown_below` where the
/// direction is 0, they include the ghosts there.
lattice::box ghosts_along(const lattice::decomposition& cut, int rank, const shell_options& o,
                          const lattice::coordinate& direction, int grown_below = 0);

/// The phase of the ghosts of `rank` along a direction. Also that of what comes back along it in a reverse exchange:
/// the adjoint has the conjugate, but there the ghosts lie beyond the opposite edges.
std::complex<double> phase_along(const lattice::decomposition& cut, int rank, const shell_options& o,
                                 const lattice::coordinate& direction);

struct shell_transfers {
    std::vector<transfer> sends, receives;
    std::vector<ghost_region> ghosts; ///< one per receive
    chosen_sites chosen;              ///< if there is a shell_options::select; places are the ghosts' directions
};

/// All ghosts straight from their owners: behind faces only, or including edges and corners.
shell_transfers shell_at_once(const lattice::decomposition& cut, int rank, const shell_options& options);
/// The ghosts behind the faces in mu of a box that is already grown in the dimensions before mu.
shell_transfers shell_along(const lattice::decomposition& cut, int rank, const shell_options& options, int mu);

} // namespace halocline::halo
