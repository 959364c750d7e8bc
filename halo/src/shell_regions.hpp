// SPDX-License-Identifier: Apache-2.0
// Which sites of a padded field go where. Pure arithmetic on a decomposition: both ends of a transfer come to the same
// list without talking.
#pragma once

#include <halocline/halo/padded_plan.hpp>

namespace halocline::halo {

struct shell_transfers {
    std::vector<transfer> sends, receives;
    std::vector<ghost_region> ghosts; ///< one per receive
};

/// All ghosts straight from their owners; faces only, or edges and corners too.
shell_transfers shell_at_once(const lattice::decomposition& cut, int rank, const padded_options& options);
/// The ghosts behind the faces in mu of a box that is grown already in the dimensions before mu.
shell_transfers shell_along(const lattice::decomposition& cut, int rank, const padded_options& options, int mu);

} // namespace halocline::halo
