// SPDX-License-Identifier: Apache-2.0
// The fast Wilson-clover operator, fp32 and fp64, on fields in *blocked* site order (lattice::block_layout): SIMD lanes
// hold different blocks (or halves of them), so block kernels are lane-pure; hops from one block to another permute
// lanes; hops between ranks go through half-spinors in a halo plan. Ref: [Luescher2003, Frommer2014].
#pragma once

#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/status.hpp>
#include <halocline/dirac/block_colour.hpp>
#include <halocline/dirac/padded_links.hpp>
#include <halocline/dirac/wilson_parameters.hpp>
#include <halocline/halo/plan.hpp>
#include <halocline/halo/plan_statistics.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/geometry.hpp>
#include <halocline/lattice/site_order.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace halocline::dirac {

struct surface_exchange;
template <class T>
class schwarz_blocks;

/// D = D_block + sum over the 8 faces of hops that cross a block boundary in that direction.
/// T is float or double. Fields: 24 components, the operator's site order. A call that is given another one touches
/// none of its fields. If it returns a status, that is misused, as are those of later calls that would use the same
/// exchange; other calls throw input_error.
template <class T>
class wilson_clover {
    struct impl;

  public:
    /// Collective.  Err: on every rank: input_error: no `order`, one that is not blocked, of 2 lanes, or of another
    /// box; blocks that differ between ranks; a cut over another number of ranks, links of another cut; parameters that
    /// are not finite, or that differ between ranks; out_of_memory; job_error.
    wilson_clover(const comm::job& j, const lattice::decomposition& cut, const padded_links& links,
                  const wilson_parameters& p, std::shared_ptr<const lattice::site_order> order);
    ~wilson_clover();
    wilson_clover(wilson_clover&&) noexcept;

    [[nodiscard]] const std::shared_ptr<const lattice::site_order>& order() const; ///< of the fields it takes

    /// y = D x. Collective; the exchange overlaps D_block.  Pre: y and x are distinct.
    /// Err:  misused; a bad status of the exchange: y is then meaningless.
    /// Cost: 1824 flop per site as usually counted, 1320 of them in hops; at least 192 reals of memory: links 72,
    ///       clover 72, x and y 24 each. One exchange of half-spinors, 12 reals per site of a face.
    [[nodiscard]] comm::status apply(lattice::field<T>& y, const lattice::field<T>& x) noexcept;

    /// y = D_block x: everything that stays inside a block. No communication.
    /// Err: input_error: a field of another shape.
    void apply_block(lattice::field<T>& y, const lattice::field<T>& x) const;

    /// The hops that leave blocks, from one field x: start_surface() begins them, finish() ends the exchange between
    /// ranks, and add_to() may then be called as often as its result is needed.
    /// Pre: the operator and x outlive it, and x does not change meanwhile: hops within this rank are read from it.
    class surface {
      public:
        surface(const surface&) = delete;
        surface& operator=(const surface&) = delete;

        /// Waits for the half-spinors of other ranks. Collective; once.
        /// Err: misused: start_surface() was given a field of another shape; a bad status of the exchange.
        [[nodiscard]] comm::status finish() noexcept;
        /// y += scale * sum over `faces` (bit face.index()) of the hops into blocks of a colour over that face. Face f
        /// is that of the destination block: f.end == high means psi(x+mu).
        /// Pre: finish() returned ok, and no surface with the same sources has been started since.
        /// Err: input_error: a field of another shape.
        void add_to(lattice::field<T>& y, block_colour targets = block_colour::all, unsigned faces = 0xff,
                    T scale = 1) const;
        /// finish() and add_to() of all faces in one: what needs no ghosts is added while the messages travel.
        /// The bits are those of the two calls.
        /// Err: as finish(), and misused for a y of another shape; y is meaningless after other bad statuses.
        [[nodiscard]] comm::status finish_and_add_to(lattice::field<T>& y, block_colour targets = block_colour::all,
                                                     T scale = 1) noexcept;

      private:
        friend class wilson_clover;
        friend class schwarz_blocks<T>;
        surface(impl& d, surface_exchange& exchange, const lattice::field<T>& x) noexcept;

        impl* d_;
        surface_exchange* exchange_;
        const lattice::field<T>* x_; ///< null: D does not take it
    };
    /// Begins the hops that leave a block: starts the exchange of half-spinors with neighbouring ranks.
    /// Pre: the last surface is finished.
    [[nodiscard]] surface start_surface(const lattice::field<T>& x) noexcept;

    /// Which field made a call return misused, the first time; empty: none did.
    [[nodiscard]] std::string why_misused() const;

    /// Statistics of the plan of apply() and start_surface().
    [[nodiscard]] halo::plan_statistics statistics() const;
    void reset_statistics();

  private:
    friend class schwarz_blocks<T>;
    std::unique_ptr<impl> impl_;
};

/// Floats of the widest vector that this machine computes with: 4, 8 or 16.
[[nodiscard]] int vector_lanes();

/// Kernels are compiled for 1, 4, 8 and 16 lanes.  Err: input_error for site orders with 2.
void require_operator_lanes(int lane_width);

/// Sites for which a field in site_order::blocked() has storage: this rank's, and the lanes that stay empty.
/// Pre, Err: as site_order::blocked(), but for boxes of any size.  Cost: no order is made.
[[nodiscard]] std::int64_t blocked_places(const lattice::box& local, const lattice::coordinate& global,
                                          const lattice::coordinate& block, int lane_width);

/// The lane width that is fastest on this machine for a rank's box: vector_lanes(), but 8 instead of 16 if 16 would
/// leave more lanes empty (few blocks, which can't be split), and 4 or 1 instead if they need no more outer indices:
/// then they take as many instructions on less memory. It may differ between ranks.
/// Pre, Err: as site_order::blocked().
[[nodiscard]] int preferred_lane_width(const lattice::box& local, const lattice::coordinate& global,
                                       const lattice::coordinate& block);

extern template class wilson_clover<float>;
extern template class wilson_clover<double>;

} // namespace halocline::dirac
