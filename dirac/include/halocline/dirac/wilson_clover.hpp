// SPDX-License-Identifier: Apache-2.0
// The fast Wilson-clover operator, fp32 and fp64, on fields in *blocked* site order (lattice::block_layout): SIMD lanes
// hold different blocks (or halves of them), so block kernels are lane-pure; hops from one block to another permute
// lanes; hops between ranks go through half-spinors in a halo plan. Ref: [Luescher2003, Frommer2014].
#pragma once

#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/status.hpp>
#include <halocline/dirac/padded_links.hpp>
#include <halocline/dirac/wilson_parameters.hpp>
#include <halocline/halo/plan.hpp>
#include <halocline/halo/plan_statistics.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>
#include <halocline/lattice/site_order.hpp>

#include <memory>

namespace halocline::dirac {

/// D = D_block + sum over the 8 faces of hops that cross a block boundary in that direction.
/// T is float or double. Fields: 24 components, the operator's site order.
template <class T>
class wilson_clover {
  public:
    /// Collective.  Err: input_error on every rank: `order` is not blocked, or of another box; job_error.
    wilson_clover(const comm::job& j, const lattice::decomposition& cut, const padded_links& links,
                  const wilson_parameters& p, std::shared_ptr<const lattice::site_order> order);
    ~wilson_clover();
    wilson_clover(wilson_clover&&) noexcept;

    [[nodiscard]] const std::shared_ptr<const lattice::site_order>& order() const; ///< of the fields it takes

    /// y = D x. Collective; the exchange overlaps D_block.  Pre: y and x are distinct.
    /// Err:  a bad status of the exchange; y is then meaningless.
    /// Cost: 1824 flop per site as usually counted, 1320 of them in hops; at least 192 reals of memory: links 72,
    ///       clover 72, x and y 24 each. One exchange of half-spinors, 12 reals per site of a face.
    [[nodiscard]] comm::status apply(lattice::field<T>& y, const lattice::field<T>& x) noexcept;

    /// y = D_block x: everything that stays inside a block. No communication.
    void apply_block(lattice::field<T>& y, const lattice::field<T>& x) const noexcept;

    /// Begins the hops that leave a block: starts the exchange of half-spinors with neighbouring ranks.
    /// colour < 0: sources in all blocks; else only in blocks of that colour (half the bytes).
    /// Pre: x neither moves nor changes until the last add_surface(), which reads the sources on this rank from it.
    void start_surface(const lattice::field<T>& x, int colour = -1) noexcept;
    [[nodiscard]] comm::status finish_surface() noexcept; ///< waits for that exchange
    /// y += sum over faces in `face_mask` (bit face.index()) of the hops into blocks from the surfaces of the last
    /// finish_surface(). Face f is that of the destination block: f.end == high means psi(x+mu).
    /// target_colour < 0: all blocks; else only blocks of that colour.  `scale` multiplies the contribution.
    void add_surface(lattice::field<T>& y, int target_colour = -1, unsigned face_mask = 0xff,
                     T scale = 1) const noexcept;

    /// finish_surface() and add_surface() of all faces in one: what needs no ghosts is added while the messages travel.
    /// The bits are those of the two calls. On a bad status y is meaningless.
    [[nodiscard]] comm::status finish_and_add_surface(lattice::field<T>& y, int target_colour = -1,
                                                      T scale = 1) noexcept;

    /// Odd-even (Schur) minimal residual inside every block of one colour (colour < 0: all): `steps` steps on
    /// D_block e = r, started from e = 0; x += e; on return r holds the remaining block residual r - D_block e, and
    /// `update` holds e. Ref: [Frommer2014] sec. 3; relaxation 1.
    /// Blocks with a zero residual are left alone (no division by zero).
    void block_solve(lattice::field<T>& x, lattice::field<T>& r, lattice::field<T>& update, int colour,
                     int steps) const noexcept;

    /// Statistics of the surface plans.
    [[nodiscard]] halo::plan_statistics statistics() const;
    void reset_statistics();

  private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

/// Floats of the widest vector that this machine computes with: 4, 8 or 16.
[[nodiscard]] int vector_lanes();

/// The lane width that is fastest on this machine for a rank's box: vector_lanes(), but 8 instead of 16 if 16 would
/// leave more lanes empty (few blocks, which can't be split). It may differ between ranks.
/// Pre: as site_order::blocked().  Cost: that of two site orders.
[[nodiscard]] int preferred_lane_width(const lattice::box& local, const lattice::coordinate& global,
                                       const lattice::coordinate& block);

extern template class wilson_clover<float>;
extern template class wilson_clover<double>;

} // namespace halocline::dirac
