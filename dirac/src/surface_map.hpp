// SPDX-License-Identifier: Apache-2.0
// Where half-spinors that leave a block go. A hop over face f of its destination site starts at a source behind f; the
// source writes its half-spinor into a local table, if it is a site of this rank, or into the message of a halo plan,
// and the destination takes it from there. Set-up only: the kernels read the lists.
#pragma once

#include "wilson_clover_kernels.hpp"

#include <halocline/halo/plan.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/site_order.hpp>

#include <array>
#include <memory>
#include <optional>
#include <vector>

namespace halocline::dirac {

/// Blocks whose sites are sources of an exchange: all of them, those of colour 0, those of colour 1.
inline constexpr int source_sets = 3;
/// colour < 0: all.
constexpr int source_set(int colour) { return colour < 0 ? 0 : 1 + colour; }

/// Whether a site of the global lattice is a source of this set.
bool in_source_set(const lattice::block_layout& b, int set, const lattice::coordinate& global);

/// By face of the destination.
struct surface_lists {
    std::array<kernels::surface_sources, lattice::faces> to_local, to_message;
    /// Targets of on-rank sources alone, and those that need at least one ghost.
    std::array<kernels::surface_targets, lattice::faces> from_local, from_ghosts;
};

class surface_map {
  public:
    /// Pre: order is blocked, of the local box of `rank`.
    surface_map(const lattice::decomposition& cut, int rank, std::shared_ptr<const lattice::site_order> order);

    /// Entries of the local table of a face; entry 0 holds zeros.
    [[nodiscard]] std::size_t local_entries(int face) const { return local_entries_[face]; }
    /// The lists of one set of sources; its messages are those of `plan`.
    [[nodiscard]] surface_lists lists(int set, const halo::plan& plan) const;

  private:
    /// Of one face f of the destination and one set: where sources write and where ghosts are found, -1: nowhere.
    struct face_entries {
        std::vector<std::int32_t> message; ///< [site]: place in the message
        std::vector<std::int32_t> ghost;   ///< [site of the face]: place among the ghosts
    };

    [[nodiscard]] const lattice::block_layout& blocks() const { return *order_->blocks(); }
    /// in_source_set for a site in local coordinates, ghosts too.
    [[nodiscard]] bool selected(int set, const lattice::coordinate& local) const;
    [[nodiscard]] bool leaves_block(const lattice::coordinate& x, lattice::face f) const;
    [[nodiscard]] std::optional<lattice::coordinate> local_neighbour(lattice::coordinate x, lattice::face f) const;
    [[nodiscard]] face_entries entries_of(int set, lattice::face f, const halo::plan& plan) const;
    [[nodiscard]] std::int32_t target_entry(int set, lattice::face f, const lattice::coordinate& x,
                                            const face_entries& entries) const;
    void number_local_entries(lattice::face f);

    lattice::decomposition cut_;
    std::shared_ptr<const lattice::site_order> order_;
    lattice::coordinate origin_, extents_;
    std::array<std::vector<std::int32_t>, lattice::faces> local_entry_; ///< [site]: place in the local table, 0: none
    std::array<std::size_t, lattice::faces> local_entries_{};
};

} // namespace halocline::dirac
