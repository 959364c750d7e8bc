// SPDX-License-Identifier: Apache-2.0
// Links of the local box with a shell of one site around it, corners included: what plaquettes, the clover term and
// heatbaths need. Set-up data: filled once by blocking exchanges, one dimension after the other.
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/field.hpp>

#include <complex>
#include <vector>

namespace halocline::dirac {

/// A row-major 3x3 matrix acting on column colour vectors.
using su3 = std::array<std::complex<double>, 9>;

class padded_links {
  public:
    /// Collective. Wraps periodically in every dimension (boundary signs belong to the operator).
    padded_links(const comm::job& j, const lattice::decomposition& cut, const lattice::gauge_field& links);

    /// U_mu(x).  Pre: -1 <= x[nu] <= extents[nu], local coordinates; mu = 0..3 is x, y, z, t.
    [[nodiscard]] const su3& operator()(const lattice::coordinate& x, int mu) const;
    [[nodiscard]] su3& operator()(const lattice::coordinate& x, int mu);
    /// Refreshes the shell from the owners. Collective.
    void exchange(const comm::job& j, const lattice::decomposition& cut);
    [[nodiscard]] const lattice::coordinate& extents() const { return extents_; }
    /// Copies the owned links back to a gauge field.
    void store(lattice::gauge_field& links) const;

  private:
    lattice::coordinate extents_{}, padded_{};
    std::vector<su3> links_;
};

} // namespace halocline::dirac
