// SPDX-License-Identifier: Apache-2.0
// Which faces a plan exchanges, and which layers of a box lie there. Pure arithmetic on a decomposition: every rank can
// compute it for every other, so both ends of a message arrive at the same list without communication.
#pragma once

#include <halocline/halo/ghost_widths.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/site_order.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace halocline::halo {

/// The `width` layers of `local` (global coordinates) at its face f.  Pre: width <= the extent.
inline lattice::box layers(const lattice::box& local, face f, int width) {
    lattice::box region = local;
    region.extents[f.mu] = width;
    if (f.end == lattice::side::high) region.origin[f.mu] += local.extents[f.mu] - width;
    return region;
}

/// The box `part` with its origin relative to that of `whole`.
inline lattice::box within(const lattice::box& whole, lattice::box part) {
    for (int mu = 0; mu < lattice::dimensions; ++mu) part.origin[mu] -= whole.origin[mu];
    return part;
}

/// Those of the sites of `part` (x fastest, numbered in any way) that have this parity, if one is given, and for which
/// select(global coordinate) is true, if there is a function.
/// part: global coordinates, also beyond the edges of the lattice.
/// fingerprint: if there is a function, a checksum over the global coordinates of the sites that it chose, in order.
std::vector<std::int32_t> selected(std::vector<std::int32_t> sites, const lattice::box& part,
                                   const lattice::coordinate& global, std::optional<int> parity,
                                   const std::function<bool(const lattice::coordinate&)>& select,
                                   std::uint64_t* fingerprint = nullptr);

/// Do messages go along dimension mu at all?  Options: of a plan, or a cut_check.
template <class Options>
bool has_messages_in(const lattice::decomposition& cut, const Options& options, int mu) {
    const bool has_width = options.widths.low[mu] > 0 || options.widths.high[mu] > 0;
    return has_width && (cut.rank_grid()[mu] > 1 || options.self_exchange || options.self_exchange_along[mu]);
}

/// Does `rank` exchange a message through its face f?
template <class Options>
bool is_exchanged(const lattice::decomposition& cut, const Options& options, int rank, face f) {
    const bool across_edge = cut.wraps(rank, f);
    return has_messages_in(cut, options, f.mu) && !(across_edge && options.boundaries[f.mu] == lattice::boundary::open);
}

/// Does any rank exchange a message through its face f?
template <class Options>
bool is_exchanged_anywhere(const lattice::decomposition& cut, const Options& options, face f) {
    return has_messages_in(cut, options, f.mu) &&
           (cut.rank_grid()[f.mu] > 1 || options.boundaries[f.mu] != lattice::boundary::open);
}

/// Calls use(rank, extent of its box along mu) for the ranks on the axis of the rank grid: boxes of one grid line differ
/// only along it, so they represent all.
template <class Use>
void for_each_extent_along(const lattice::decomposition& cut, int mu, Use&& use) {
    for (int k = 0; k < cut.rank_grid()[mu]; ++k) {
        lattice::coordinate position{};
        position[mu] = k;
        const int rank = cut.rank_at(position);
        use(rank, cut.local_box(rank).extents[mu]);
    }
}

/// Err: input_error, beginning with `who`: a box of these extents, with its ghosts, would have an extent beyond 32 bits.
void check_grown(const std::string& who, const lattice::coordinate& extents, const ghost_widths& widths);

/// The options of a plan that determine whether such a plan is possible at all.
struct cut_check {
    std::string who; ///< "halo 'name': "
    ghost_widths widths;
    std::array<lattice::boundary, lattice::dimensions> boundaries;
    bool self_exchange = false;
    std::array<bool, lattice::dimensions> self_exchange_along{};
};
/// Refuses impossible plans. The verdict is the same on every rank.
/// Err: input_error with the numbers.
void check_cut(const cut_check& plan, const lattice::decomposition& cut, int ranks);
/// Err: input_error, beginning with `who`: neither 0 nor 1.
void check_parity(const std::string& who, std::optional<int> parity);
/// Err: input_error, beginning with `who`, unless each of these sites, lexicographic in the local box, has a position.
void require_positions(const std::string& who, const lattice::site_order& order, std::span<const std::int32_t> sites);

/// Refuses a message of so many sites, with `fields` times `site_bytes` of each, unless the total size of all slots of
/// all messages fits into 64 bits. site_bytes 0: the sum of fields overflowed.  Pre: fields > 0.
/// Err: input_error, beginning with `what`, "halo 'name': a message of ".
void refuse_wrapping_size(const std::string& what, std::size_t sites, std::size_t site_bytes, int fields = 1);

/// The part of a plan's shape that every layout has, as text for comparison.
std::string shape_text(const lattice::decomposition& cut, const ghost_widths& widths,
                       const std::array<lattice::boundary, lattice::dimensions>& boundaries);

} // namespace halocline::halo
