// SPDX-License-Identifier: Apache-2.0
// What an operator holds, for itself and for the Schwarz methods on its blocks.
#pragma once

#include "surface_map.hpp"
#include "wilson_clover_kernels.hpp"

#include <halocline/dirac/wilson_clover.hpp>
#include <halocline/lattice/field_shape.hpp>

#include <array>
#include <memory>
#include <string_view>

namespace halocline::dirac {

template <class T>
struct wilson_clover<T>::impl {
    impl(const comm::job& j, const lattice::decomposition& of_cut, const padded_links& links,
         const wilson_parameters& p, std::shared_ptr<const lattice::site_order> site_order);

    [[nodiscard]] const lattice::block_layout& blocks() const { return *order->blocks(); }
    /// Groups of a colour: [first, last).
    [[nodiscard]] std::array<int, 2> groups(block_colour colour) const {
        const int red = blocks().groups[0], all = red + blocks().groups[1];
        return {colour == block_colour::black ? red : 0, colour == block_colour::red ? red : all};
    }
    /// Whether blocks of this rank are sources, in this colour, of hops into the blocks of a group.
    [[nodiscard]] bool has_sources_between(block_colour sources, int group) const {
        if (sources == block_colour::all) return true;
        const bool red = sources == block_colour::red;
        return blocks().two_colours ? red != (group < blocks().groups[0]) : red;
    }
    /// First real of a group in a field of `components`.
    [[nodiscard]] std::int64_t group_offset(int group, int components) const {
        return std::int64_t{group} * blocks().sites_per_group * components * order->lane_width();
    }

    [[nodiscard]] bool takes(const lattice::field<T>& x) const noexcept {
        return lattice::has_shape(x, kernels::spinor_reals, *order);
    }
    /// Err: input_error, which begins with `what`: a field of another shape.
    void require(const lattice::field<T>& x, std::string_view what) const {
        lattice::require_shape(x, what, kernels::spinor_reals, *order);
    }
    /// Makes an exchange misused by this field (a literal), unless its status is bad already; returns the status.
    comm::status refuse(surface_exchange& exchange, const char* field) noexcept {
        if (wrong_field == nullptr) wrong_field = field;
        exchange.plan.refuse_start(field);
        return exchange.plan.finish();
    }

    /// What hops are added to, and which of them.
    struct targets {
        lattice::field<T>& y;
        int first_group, last_group;
        unsigned faces;
        T scale;
    };
    [[nodiscard]] targets targets_of(lattice::field<T>& y, block_colour colour, unsigned faces, T scale) const {
        const auto [first, last] = groups(colour);
        return {y, first, last, faces, scale};
    }
    void add_between(const targets& to, block_colour sources, const lattice::field<T>& x) const;
    void add_ghosts(const targets& to, const surface_exchange& exchange) const;

    comm::job job;
    lattice::decomposition cut;
    wilson_parameters parameters;
    std::shared_ptr<const lattice::site_order> order;
    kernels::table<T> kernel;
    kernels::block_stencil<T> stencil;
    kernels::lane_sources<T> between;           ///< from blocks of this rank
    bool from_memory = false;                   ///< apply() reads too much for a cache
    lattice::field<T> minus_half_links;         ///< -1/2 U with boundary signs: [outer][mu][18][W]
    lattice::field<T> clover;                   ///< the site-local term, packed
    std::unique_ptr<surface_exchange> surfaces; ///< of all blocks
    const char* wrong_field = nullptr;          ///< for which a call was first refused
};

} // namespace halocline::dirac
