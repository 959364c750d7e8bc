// SPDX-License-Identifier: Apache-2.0
// Neighbours inside a group of blocks, from a blocked site order.
#pragma once

#include "wilson_clover_kernels.hpp"

#include <halocline/lattice/site_order.hpp>

namespace halocline::dirac {

template <class T>
kernels::block_stencil<T> make_stencil(const lattice::block_layout& b);

extern template kernels::block_stencil<float> make_stencil(const lattice::block_layout&);
extern template kernels::block_stencil<double> make_stencil(const lattice::block_layout&);

} // namespace halocline::dirac
