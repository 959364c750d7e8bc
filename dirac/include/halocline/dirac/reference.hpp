// SPDX-License-Identifier: Apache-2.0
// Plain reference: the formulas of the operator as written, one site after the other, fp64.
// Tests compare the fast kernels with it; it also builds the clover term.
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline/dirac/padded_links.hpp>
#include <halocline/dirac/wilson_parameters.hpp>
#include <halocline/halo/plan.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>

#include <array>
#include <complex>

namespace halocline::dirac {

/// Mean of Re tr P / 3 over all plaquettes of the global lattice, in [-1, 1]: same bits on every rank. Collective.
/// Err: job_error.
double plaquette(const comm::job& j, const lattice::decomposition& cut, const padded_links& links);
/// plaquette() for each of the six planes xy, xz, xt, yz, yt, zt.
std::array<double, 6> plaquette_by_plane(const comm::job& j, const lattice::decomposition& cut,
                                         const padded_links& links);

/// Reals per site of the site-local part: 2 Hermitian 6x6 matrices.
inline constexpr int clover_components = 144;

/// Diagonal (site-local) part of D, (4 + m0) + clover, as two Hermitian 6x6 matrices per site (spins 0,1 and 2,3; row =
/// 3 * (spin % 2) + colour), row-major complex: 2 x 36 complex = 144 reals per site, lexicographic.
lattice::field<double> clover_term(const padded_links& links, const wilson_parameters& p);

/// y = D x on lexicographic spinor fields (24 reals per site).
class reference_operator {
  public:
    /// Collective.  Err: job_error.
    reference_operator(const comm::job& j, const lattice::decomposition& cut, const padded_links& links,
                       const wilson_parameters& p);
    /// Collective.  Err: job_error.
    void apply(lattice::field<double>& y, const lattice::field<double>& x);

  private:
    padded_links links_; ///< with boundary factors
    lattice::field<double> diagonal_;
    std::array<lattice::boundary, lattice::dimensions> boundaries_;
    halo::plan spinors_;
};

/// gamma_mu as (row -> column, value): gamma_mu has one non-zero entry per row. mu = 0..3 is x, y, z, t.
struct gamma_row {
    int column;
    std::complex<double> value;
};
const std::array<std::array<gamma_row, 4>, 4>& gamma_matrices(); ///< [mu][row], conventions of openQCD

} // namespace halocline::dirac
