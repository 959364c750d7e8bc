// SPDX-License-Identifier: Apache-2.0
// Links of the local box with a shell of one site around it, corners included: what plaquettes, the clover term and
// heatbaths need. Set-up data: filled by blocking exchanges, one dimension after the other, each including the shell of
// the previous dimensions, so that corners arrive without messages of their own.
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline/dirac/su3.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace halocline::dirac {

/// The links of this rank's box and of the sites around it. A value: copies are deep. It keeps a handle of the job and
/// the cut with which it was made, so that it is always refreshed by those that own its links.
/// Memory: 576 B per site of the padded box.
class padded_links {
  public:
    /// Collective. Wraps periodically in every dimension (boundary signs belong to the operator).
    /// Shape: links has the extents of this rank's box, 72 components.
    /// Err:   on every rank: input_error: a cut over another number of ranks, links of another shape; out_of_memory;
    ///        job_error.
    padded_links(const comm::job& j, const lattice::decomposition& cut, const lattice::gauge_field& links);

    /// U_mu(x).  Pre: -1 <= x[nu] <= extents[nu], local coordinates; mu = 0..3 is x, y, z, t.
    [[nodiscard]] const su3& operator()(const lattice::coordinate& x, int mu) const { return links_[at(x, mu)]; }
    [[nodiscard]] su3& operator()(const lattice::coordinate& x, int mu) { return links_[at(x, mu)]; }
    /// Index of U_mu(x) in values().
    [[nodiscard]] std::size_t at(const lattice::coordinate& x, int mu) const {
        return static_cast<std::size_t>(mu) * stride_[4] + (x[0] + 1) + (x[1] + 1) * stride_[1] +
               (x[2] + 1) * stride_[2] + (x[3] + 1) * stride_[3];
    }
    /// Distance in values() between U_mu(x) and U_mu(x + nu).
    [[nodiscard]] std::ptrdiff_t stride(int nu) const { return static_cast<std::ptrdiff_t>(stride_[nu]); }
    /// All links, including the shell: for each mu the padded box, lexicographic.
    [[nodiscard]] std::span<su3> values() { return links_; }
    [[nodiscard]] std::span<const su3> values() const { return links_; }

    /// Refreshes the shell from the owners. Collective.  Err: job_error.
    void exchange();
    /// Refreshes only the shell of the links in direction mu that start on sites of this (global) parity.
    /// Collective.  Err: job_error.
    void exchange(int mu, int parity);

    [[nodiscard]] const comm::job& job() const { return job_; }
    [[nodiscard]] const lattice::decomposition& cut() const { return cut_; }
    /// Extents of the local box.
    [[nodiscard]] const lattice::coordinate& extents() const { return local_.extents; }
    /// The local box in the global lattice.
    [[nodiscard]] const lattice::box& local() const { return local_; }
    [[nodiscard]] const lattice::coordinate& global() const { return cut_.global(); }
    /// Copies the owned links back to a gauge field, and marks it as written.
    /// Shape: extents(), 72 components.  Err: input_error: another shape.
    void store(lattice::gauge_field& links) const;

  private:
    template <class Select>
    void exchange_selected(const Select& select);

    comm::job job_;
    lattice::decomposition cut_;
    lattice::box local_;
    std::array<std::size_t, 5> stride_{}; ///< of the padded box; the last one is its volume
    std::vector<su3> links_;
};

/// The links as seen by an operator with these boundaries: in each dimension the links that leave the last slice of the
/// global lattice are multiplied by 1 (periodic), -1 (antiperiodic) or 0 (open). So are the links in the shell.
padded_links with_boundaries(padded_links links, const std::array<lattice::boundary, lattice::dimensions>& boundaries);

} // namespace halocline::dirac
