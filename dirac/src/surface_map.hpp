// SPDX-License-Identifier: Apache-2.0
// Where half-spinors that cross to another rank go. A hop over face f of its destination site starts at a source behind
// f; if that is a site of another rank, that rank writes the half-spinor into the message of a halo plan, and the
// destination takes it from the plan's ghosts. Set-up only: the kernels read the lists.
#pragma once

#include "wilson_clover_kernels.hpp"

#include <halocline/comm/job.hpp>
#include <halocline/dirac/block_colour.hpp>
#include <halocline/halo/plan.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/site_order.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

namespace halocline::dirac {

/// Sources and targets of half-spinors, by face of the destination.
struct surface_lists {
    std::array<kernels::surface_sources, lattice::faces> to_message;
    std::array<kernels::surface_targets, lattice::faces> from_ghosts;
};

class surface_map {
  public:
    /// Pre: order is blocked, for the local box of `rank`.
    surface_map(const lattice::decomposition& cut, int rank, std::shared_ptr<const lattice::site_order> order);

    /// The lists for the sources that `plan` sends.  Pre: one layer through each face.
    [[nodiscard]] surface_lists lists(const halo::plan& plan) const;

  private:
    [[nodiscard]] std::vector<std::int32_t> places_in_message(lattice::face f, const halo::plan& plan) const;
    [[nodiscard]] std::vector<std::int32_t> places_among_ghosts(lattice::face f, const halo::plan& plan) const;

    std::shared_ptr<const lattice::site_order> order_;
    lattice::coordinate origin_, extents_;
};

/// The exchange of half-spinors whose sources are in blocks of a colour.
struct surface_exchange {
    block_colour sources;
    halo::plan plan;
    surface_lists lists;
};
/// Collective.  `order`: of this rank's box, blocked.  `half_spinor_bytes`: of a site in a message.
/// Err: on every rank: out_of_memory; slab_full; job_error.
std::unique_ptr<surface_exchange> make_surface_exchange(const comm::job& j, const lattice::decomposition& cut,
                                                        const std::shared_ptr<const lattice::site_order>& order,
                                                        block_colour sources, std::size_t half_spinor_bytes);

} // namespace halocline::dirac
