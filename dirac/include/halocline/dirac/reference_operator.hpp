// SPDX-License-Identifier: Apache-2.0
// The plain operator: its formula as written, one site after the other, fp64. Tests compare the fast kernels with it,
// and programs their solutions.
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline/dirac/padded_links.hpp>
#include <halocline/dirac/wilson_parameters.hpp>
#include <halocline/halo/plan.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>

#include <array>
#include <optional>

namespace halocline::dirac {

/// y = D x on lexicographic spinor fields (24 reals per site).
class reference_operator {
  public:
    /// Collective.  Err: on every rank: input_error: a cut over another number of ranks, links of another cut,
    /// parameters that are not finite, or differ between ranks; out_of_memory; job_error. Any m0 and csw will do.
    reference_operator(const comm::job& j, const lattice::decomposition& cut, const padded_links& links,
                       const wilson_parameters& p);
    /// Collective.  Shape: 24 components on the local box, one lane; y and x are distinct.
    /// Err: on every rank: input_error: a field of another shape, or the same one twice; job_error.
    void apply(lattice::field<double>& y, const lattice::field<double>& x);

  private:
    comm::job job_;
    std::optional<padded_links> links_; ///< with boundary factors; all ranks make it together
    lattice::field<double> diagonal_;
    std::array<lattice::boundary, lattice::dimensions> boundaries_;
    halo::plan spinors_;
};

} // namespace halocline::dirac
