// SPDX-License-Identifier: Apache-2.0
// The site-local term in the form that the kernels read: two packed Hermitian 6x6 matrices per site.
#pragma once

#include <halocline/dirac/padded_links.hpp>
#include <halocline/dirac/wilson_parameters.hpp>
#include <halocline/lattice/field.hpp>

#include <memory>

namespace halocline::dirac {

/// 4 + m0 + clover on this rank's box, whose extents are those of `order`.
/// Shape: kernels::site_clover_reals per site.  Pre: `u` are links with_boundaries().
template <class T>
lattice::field<T> packed_clover(std::shared_ptr<const lattice::site_order> order, const padded_links& u,
                                const wilson_parameters& p);

/// packed_clover(), which is given, on even block sites; -1/(4 + m0 + clover) on odd ones.  Pre: the order is blocked.
/// Err: input_error naming the global coordinate of a site where the inverse does not exist.
template <class T>
lattice::field<T> packed_schur(const lattice::field<T>& clover, const padded_links& u, const wilson_parameters& p);

extern template lattice::field<float> packed_clover(std::shared_ptr<const lattice::site_order>, const padded_links&,
                                                    const wilson_parameters&);
extern template lattice::field<double> packed_clover(std::shared_ptr<const lattice::site_order>, const padded_links&,
                                                     const wilson_parameters&);
extern template lattice::field<float> packed_schur(const lattice::field<float>&, const padded_links&,
                                                   const wilson_parameters&);
extern template lattice::field<double> packed_schur(const lattice::field<double>&, const padded_links&,
                                                    const wilson_parameters&);

} // namespace halocline::dirac
