// SPDX-License-Identifier: Apache-2.0
// The site-local term in the form that the kernels read: two packed Hermitian 6x6 matrices per site.
#pragma once

#include <halocline/dirac/padded_links.hpp>
#include <halocline/dirac/wilson_parameters.hpp>
#include <halocline/lattice/field.hpp>

namespace halocline::dirac {

/// Shape: both fields hold kernels::site_clover_reals per site, in a blocked order.
template <class T>
struct clover_blocks {
    lattice::field<T> clover; ///< 4 + m0 + clover
    lattice::field<T> schur;  ///< equal to clover on even block sites, -1/(4 + m0 + clover) on odd ones
};

/// The term of this rank's box, whose extents are those of `order`, a blocked one.
/// Err: input_error naming the global coordinate of a site where an inverse is needed and does not exist.
template <class T>
clover_blocks<T> make_clover_blocks(std::shared_ptr<const lattice::site_order> order, const padded_links& links,
                                    const wilson_parameters& p);

extern template clover_blocks<float> make_clover_blocks(std::shared_ptr<const lattice::site_order>, const padded_links&,
                                                        const wilson_parameters&);
extern template clover_blocks<double> make_clover_blocks(std::shared_ptr<const lattice::site_order>,
                                                         const padded_links&, const wilson_parameters&);

} // namespace halocline::dirac
