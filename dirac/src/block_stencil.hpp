// SPDX-License-Identifier: Apache-2.0
// Where the hops of a blocked site order come from, in the form the kernels read. Set-up only.
#pragma once

#include "wilson_clover_kernels.hpp"

#include <halocline/lattice/site_order.hpp>

namespace halocline::dirac {

/// Neighbours inside a block.  `vectors` hold the lanes of one outer index.
template <class T>
kernels::block_stencil<T> make_stencil(const lattice::block_layout& b, int vectors);

/// Lanes behind the faces of blocks, if another block of this rank lies there (or the same one, around a dimension
/// of one block).
template <class T>
kernels::lane_sources<T> sources_between(const lattice::block_layout& b, const lattice::coordinate& rank_grid,
                                         int vectors);

extern template kernels::block_stencil<float> make_stencil(const lattice::block_layout&, int);
extern template kernels::block_stencil<double> make_stencil(const lattice::block_layout&, int);
extern template kernels::lane_sources<float> sources_between(const lattice::block_layout&, const lattice::coordinate&,
                                                             int);
extern template kernels::lane_sources<double> sources_between(const lattice::block_layout&, const lattice::coordinate&,
                                                              int);

} // namespace halocline::dirac
