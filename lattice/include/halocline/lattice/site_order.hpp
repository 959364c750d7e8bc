// SPDX-License-Identifier: Apache-2.0
// Site order: a bijection between the sites of a local box and storage positions (outer, lane).
// Fields store [outer][component][W]; the W lanes of one outer index are computed together by SIMD instructions.
// Message order (halo/) is lexicographic per face and depends on none of this (docs/decisions/0001).
#pragma once

#include <halocline/lattice/geometry.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace halocline::lattice {

/// How blocks are laid into lanes, for kernels that work block by block (SAP, the Dirac operator).
/// Blocks of colour 0 come first (those whose *global* block coordinates have an even sum), then those of colour 1.
/// A group is what W lanes hold together: `blocks_per_group` blocks of one colour, each split over `splits_per_block`
/// lanes (2^k equal sub-boxes; the block is halved along the dimensions marked in `split`).
/// lane = block_in_group * splits_per_block + sub, where bit j of sub is the half along the j-th split dimension
/// (ascending mu). So a step across a split plane goes to lane ^ (1 << j).
/// Within a group outer indices run over the sites of the sub-box: even ones first, then odd ones, each lexicographic.
/// A dimension is only split if half the block extent is even, so that the block-local parity is the same in all lanes.
struct block_layout {
    coordinate block{};                   ///< block extents in sites
    coordinate grid{};                    ///< blocks of this rank per dimension
    coordinate grid_origin{};             ///< global block coordinate of the first block
    coordinate global_grid{};             ///< blocks of the global lattice per dimension
    coordinate sub{};                     ///< extents of one lane's sub-box
    std::array<bool, dimensions> split{}; ///< dimensions along which a block is split over lanes
    int lane_width = 1;
    int blocks_per_group = 1;
    int splits_per_block = 1;
    int groups[2] = {0, 0};  ///< groups of colour 0 and 1; colour-0 groups come first
    int sites_per_group = 0; ///< outer indices per group = volume(sub)
    int even_sites = 0;      ///< even ones among these (block-local parity of the sub-box)
    bool two_colours = true; ///< false: red-black is impossible; then all blocks are colour 0
    /// Local block (lexicographic over `grid`) in each lane-block place: [group][block_in_group], -1 for padding.
    std::vector<int> block_of;
    /// Inverse: local block -> group * blocks_per_group + block_in_group.
    std::vector<int> place_of;
};

/// A site order; immutable and shared by the fields that use it. Positions are 32-bit: a box, including its padding,
/// has at most 2^31 - 1 sites.  Err: input_error for more, and for an extent below 1.
/// Cost: 8 bytes per site, and none in lexicographic order.
class site_order {
  public:
    /// outer = lexicographic index, W = 1.
    static std::shared_ptr<const site_order> lexicographic(const coordinate& extents);
    /// Even sites first (parity of the global coordinate), then odd ones, each lexicographic; W = 1.
    static std::shared_ptr<const site_order> even_odd(const box& local);
    /// Only the sites of one parity of the global coordinate (0: even, 1: odd), lexicographic; W = 1. For the fields of
    /// even/odd solvers, which halo plans of that parity exchange if they were made for the same order; functions that need
    /// every site refuse such fields.
    /// Err: input_error for another parity.
    static std::shared_ptr<const site_order> half(const box& local, int parity);
    /// See block_layout.  Pre: the local box is cut on block boundaries.  `lane_width` is 1, 2, 4, 8 or 16.
    /// Err: input_error when the block does not divide the local box.
    static std::shared_ptr<const site_order> blocked(const box& local, const coordinate& global,
                                                     const coordinate& block, int lane_width);

    /// These sites, placed as here, followed by room for `more` sites (ghosts), in whole outer indices. Sites are
    /// numbered consecutively: extents() of the result is {volume() + more, 1, 1, 1}.  Err: input_error for too many
    /// sites, or fewer than 0.
    [[nodiscard]] std::shared_ptr<const site_order> followed_by(std::int64_t more) const;

    [[nodiscard]] const coordinate& extents() const { return extents_; }
    [[nodiscard]] int lane_width() const { return lane_width_; }
    /// lane_width() is 2 to this power.
    [[nodiscard]] int lane_bits() const { return lane_bits_; }
    /// Outer positions, including padding: storage is outer_sites() * lane_width() sites.
    [[nodiscard]] std::int64_t outer_sites() const { return outer_sites_; }
    /// Sites of the local box; half of them have no position in half() orders.
    [[nodiscard]] std::int64_t volume() const { return volume_; }
    /// Has every site a position?
    [[nodiscard]] bool is_whole() const { return whole_; }
    /// Storage position outer * W + lane of the site with this lexicographic index in the local box; -1 if it has none.
    /// Pre: 0 <= site < volume().
    [[nodiscard]] std::int64_t position(std::int64_t site) const { return lexicographic_ ? site : position_[site]; }
    /// The site at a storage position, by its lexicographic index in the local box; -1 for a padding lane.
    /// Pre: 0 <= position < outer_sites() * lane_width().
    [[nodiscard]] std::int64_t site(std::int64_t position) const { return lexicographic_ ? position : site_[position]; }
    /// The block layout, if this order is blocked; else nullptr.
    [[nodiscard]] const block_layout* blocks() const { return blocks_ ? &*blocks_ : nullptr; }
    /// Made by lexicographic(): all such orders of equal extents are equal.
    [[nodiscard]] bool is_lexicographic() const { return lexicographic_; }
    /// Is it the same object, or are both lexicographic with equal extents? Then every site is in the same place.
    [[nodiscard]] bool is_like(const site_order& other) const {
        return this == &other || (lexicographic_ && other.lexicographic_ && extents_ == other.extents_);
    }
    /// Is every site in the same place, in as much storage?  Cost: a look at all sites if neither is_like() the other.
    [[nodiscard]] bool places_as(const site_order& other) const {
        return is_like(other) || (extents_ == other.extents_ && lane_width_ == other.lane_width_ &&
                                  outer_sites_ == other.outer_sites_ && has_positions_of(other));
    }

  private:
    site_order() = default;
    void take_positions(std::vector<std::int32_t> positions);
    [[nodiscard]] bool has_positions_of(const site_order& other) const;

    coordinate extents_{};
    int lane_width_ = 1, lane_bits_ = 0;
    bool lexicographic_ = false; ///< then position and site are the same, and there are no tables
    bool whole_ = true;
    std::int64_t volume_ = 0;
    std::int64_t outer_sites_ = 0;
    std::vector<std::int32_t> position_;
    std::vector<std::int32_t> site_;
    std::optional<block_layout> blocks_;
};

} // namespace halocline::lattice
