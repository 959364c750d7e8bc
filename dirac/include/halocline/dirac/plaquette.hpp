// SPDX-License-Identifier: Apache-2.0
// The plaquette, the number by which a gauge configuration is recognised.
#pragma once

#include <halocline/dirac/padded_links.hpp>

#include <array>

namespace halocline::dirac {

/// Mean of Re tr P / 3 over all plaquettes of the global lattice, in [-1/2, 1]: the same bits on every rank and rank
/// grid. Collective.
/// Pre: the shell of `links` is current.  Err: job_error.
double plaquette(const padded_links& links);
/// plaquette() for each of the six planes xy, xz, xt, yz, yt, zt.
std::array<double, 6> plaquette_by_plane(const padded_links& links);

} // namespace halocline::dirac
