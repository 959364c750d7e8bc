// SPDX-License-Identifier: Apache-2.0
// Where half-spinors that cross to another rank go. A hop over face f of its destination site starts at a source behind
// f; if that is a site of another rank, that rank writes the half-spinor into the message of a halo plan, and the
// destination takes it from the plan's ghosts. Set-up only: the kernels read the lists.
#pragma once

#include "wilson_clover_kernels.hpp"

#include <halocline/halo/plan.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/site_order.hpp>

#include <array>
#include <memory>
#include <vector>

namespace halocline::dirac {

/// Which blocks' sites are sources of an exchange: all of them, those of colour 0, those of colour 1.
inline constexpr int source_sets = 3;
/// colour < 0: all.
constexpr int source_set(int colour) { return colour < 0 ? 0 : 1 + colour; }

/// Whether a site of the global lattice is a source of this set.
bool in_source_set(const lattice::block_layout& b, int set, const lattice::coordinate& global);

/// Sources and targets of half-spinors, by face of the destination.
struct surface_lists {
    std::array<kernels::surface_sources, lattice::faces> to_message;
    std::array<kernels::surface_targets, lattice::faces> from_ghosts;
};

class surface_map {
  public:
    /// Pre: order is blocked, for the local box of `rank`.
    surface_map(const lattice::decomposition& cut, int rank, std::shared_ptr<const lattice::site_order> order);

    /// The lists for one set of sources, whose messages are those of `plan`.
    [[nodiscard]] surface_lists lists(int set, const halo::plan& plan) const;

  private:
    [[nodiscard]] std::vector<std::int32_t> places_in_message(lattice::face f, const halo::plan& plan) const;
    [[nodiscard]] std::vector<std::int32_t> places_among_ghosts(int set, lattice::face f, const halo::plan& plan) const;

    lattice::decomposition cut_;
    std::shared_ptr<const lattice::site_order> order_;
    lattice::coordinate origin_, extents_;
};

} // namespace halocline::dirac
