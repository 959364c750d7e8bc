// SPDX-License-Identifier: Apache-2.0
#include <halocline/lattice/site_order.hpp>

#include <halocline/base/error.hpp>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace halocline::lattice {
namespace {

/// Positions are 32-bit, which halves the memory of the tables; a rank never has more sites.
constexpr std::int64_t most_sites = std::numeric_limits<std::int32_t>::max();

/// Err: input_error unless the box has 1 to 2^31 - 1 sites.
void check_box(const coordinate& extents) {
    for (int e : extents)
        if (e < 1) throw input_error("local box " + to_string(extents) + ": every extent must be at least 1");
    if (!volume_up_to(most_sites, extents))
        throw input_error("local box " + to_string(extents) + " has more than " + std::to_string(most_sites) +
                          " sites: cut the lattice over more ranks");
}

/// Checks how many places a box takes, including padding and what follows it.  Err: input_error.
void check_places(std::int64_t places, const coordinate& extents) {
    if (places > most_sites)
        throw input_error("local box " + to_string(extents) + " takes " + std::to_string(places) +
                          " places, padding and ghosts included; a rank has at most " + std::to_string(most_sites));
}

/// Index of every site of a box in the order "even ones first, then odd ones, each lexicographic".
/// Shape: volume(extents) entries; `offset` is added to the coordinate before its parity is taken.
std::vector<std::int32_t> even_first(const coordinate& extents, const coordinate& offset) {
    const std::int64_t sites = volume(extents);
    std::vector<std::int32_t> rank(static_cast<std::size_t>(sites));
    std::int32_t next = 0;
    for (int p = 0; p < 2; ++p)
        for (std::int64_t s = 0; s < sites; ++s)
            if (((parity(lexicographic_coordinate(s, extents)) + parity(offset)) & 1) == p) rank[s] = next++;
    return rank;
}

/// Number of groups that hold `blocks` blocks.
int groups_for(int blocks, int blocks_per_group) { return (blocks + blocks_per_group - 1) / blocks_per_group; }

/// Splits the block over lanes: as few splits as give the least padding, t first, then z, y, x.
void choose_splits(block_layout& b, const int (&blocks)[2]) {
    int splittable = 0;
    for (int extent : b.block) splittable += extent % 4 == 0 ? 1 : 0;

    const auto padding = [&](int per_group) {
        int places = 0;
        for (int n : blocks) places += groups_for(n, per_group) * per_group - n;
        return places;
    };
    int splits = 0;
    for (int k = 1; k <= splittable && (1 << k) <= b.lane_width; ++k)
        if (padding(b.lane_width >> k) < padding(b.lane_width >> splits)) splits = k;

    b.splits_per_block = 1 << splits;
    b.blocks_per_group = b.lane_width >> splits;
    b.sub = b.block;
    for (int mu = dimensions - 1; mu >= 0 && splits > 0; --mu) {
        if (b.block[mu] % 4 != 0) continue;
        b.split[mu] = true;
        b.sub[mu] /= 2;
        --splits;
    }
}

/// Distributes the blocks over groups, colour 0 first.
void place_blocks(block_layout& b, const std::vector<int>& colour, const int (&blocks)[2]) {
    for (int c = 0; c < 2; ++c) b.groups[c] = groups_for(blocks[c], b.blocks_per_group);
    b.block_of.assign(static_cast<std::size_t>((b.groups[0] + b.groups[1]) * b.blocks_per_group), -1);
    b.place_of.resize(colour.size());
    int next[2] = {0, b.groups[0] * b.blocks_per_group};
    for (std::size_t i = 0; i < colour.size(); ++i) {
        const int place = next[colour[i]]++;
        b.place_of[i] = place;
        b.block_of[place] = static_cast<int>(i);
    }
}

} // namespace

void site_order::take_positions(std::vector<std::int32_t> positions) {
    position_ = std::move(positions);
    volume_ = static_cast<std::int64_t>(position_.size());
    site_.assign(static_cast<std::size_t>(outer_sites_ * lane_width_), -1);
    for (std::size_t s = 0; s < position_.size(); ++s)
        if (position_[s] >= 0) site_[position_[s]] = static_cast<std::int32_t>(s);
}

bool site_order::has_positions_of(const site_order& other) const {
    if (!lexicographic_ && !other.lexicographic_) return position_ == other.position_;
    for (std::int64_t s = 0; s < volume_; ++s)
        if (position(s) != other.position(s)) return false;
    return true;
}

std::shared_ptr<const site_order> site_order::lexicographic(const coordinate& extents) {
    check_box(extents);
    std::shared_ptr<site_order> order(new site_order);
    order->extents_ = extents;
    order->lexicographic_ = true;
    order->volume_ = order->outer_sites_ = lattice::volume(extents);
    return order;
}

std::shared_ptr<const site_order> site_order::even_odd(const box& local) {
    check_box(local.extents);
    std::shared_ptr<site_order> order(new site_order);
    order->extents_ = local.extents;
    order->outer_sites_ = local.volume();
    order->take_positions(even_first(local.extents, local.origin));
    return order;
}

std::shared_ptr<const site_order> site_order::half(const box& local, int parity) {
    if (parity != 0 && parity != 1)
        throw input_error("sites of parity " + std::to_string(parity) + ": must be 0 (even) or 1 (odd)");
    check_box(local.extents);
    std::shared_ptr<site_order> order(new site_order);
    order->extents_ = local.extents;
    order->whole_ = false;
    std::vector<std::int32_t> positions(static_cast<std::size_t>(local.volume()), -1);
    for (std::int64_t s = 0; s < local.volume(); ++s)
        if (lattice::parity(local.site(s)) == parity)
            positions[static_cast<std::size_t>(s)] = static_cast<std::int32_t>(order->outer_sites_++);
    order->take_positions(std::move(positions));
    return order;
}

namespace {

/// Blocks of the local box, their colours and their places in groups.  Err: input_error if they do not fit.
block_layout lay_out(const box& local, const coordinate& global, const coordinate& block, int lane_width) {
    block_layout b;
    b.block = block;
    b.lane_width = lane_width;
    for (int mu = 0; mu < dimensions; ++mu) {
        if (block[mu] < 1 || local.extents[mu] % block[mu] != 0 || local.origin[mu] % block[mu] != 0 ||
            global[mu] % block[mu] != 0)
            throw input_error("blocks of " + to_string(block) + " do not fit the local box " +
                              to_string(local.extents) + " at " + to_string(local.origin) + " of the lattice " +
                              to_string(global) + ": every cut in " + dimension_name[mu] + " must be a multiple of " +
                              std::to_string(block[mu]));
        b.grid[mu] = local.extents[mu] / block[mu];
        b.grid_origin[mu] = local.origin[mu] / block[mu];
        b.global_grid[mu] = global[mu] / block[mu];
        // With an odd number of blocks the periodic wrap joins two blocks of the same colour (or one with itself).
        if (b.global_grid[mu] % 2 != 0) b.two_colours = false;
    }

    std::vector<int> colour(static_cast<std::size_t>(lattice::volume(b.grid)), 0);
    int blocks[2] = {0, 0};
    for (std::size_t i = 0; i < colour.size(); ++i) {
        if (b.two_colours)
            colour[i] =
                (parity(lexicographic_coordinate(static_cast<std::int64_t>(i), b.grid)) + parity(b.grid_origin)) & 1;
        ++blocks[colour[i]];
    }
    choose_splits(b, blocks);
    place_blocks(b, colour, blocks);

    b.sites_per_group = static_cast<int>(lattice::volume(b.sub));
    b.even_sites = (b.sites_per_group + 1) / 2;
    return b;
}

} // namespace

std::shared_ptr<const site_order> site_order::blocked(const box& local, const coordinate& global,
                                                      const coordinate& block, int lane_width) {
    if (lane_width < 1 || lane_width > 16 || !std::has_single_bit(static_cast<unsigned>(lane_width)))
        throw input_error("lane width is " + std::to_string(lane_width) + ": it must be 1, 2, 4, 8 or 16");
    check_box(local.extents);
    block_layout b = lay_out(local, global, block, lane_width);
    const std::vector<std::int32_t> rank_in_sub = even_first(b.sub, {0, 0, 0, 0});

    std::shared_ptr<site_order> order(new site_order);
    order->extents_ = local.extents;
    order->lane_width_ = lane_width;
    order->lane_bits_ = std::countr_zero(static_cast<unsigned>(lane_width));
    order->outer_sites_ = std::int64_t{b.groups[0] + b.groups[1]} * b.sites_per_group;
    check_places(order->outer_sites_ * lane_width, local.extents);
    std::vector<std::int32_t> positions(static_cast<std::size_t>(local.volume()));
    for (std::size_t s = 0; s < positions.size(); ++s) {
        const coordinate x = lexicographic_coordinate(static_cast<std::int64_t>(s), local.extents);
        coordinate block_at{}, in_sub{};
        int lane = 0, bit = 0;
        for (int mu = 0; mu < dimensions; ++mu) {
            block_at[mu] = x[mu] / block[mu];
            const int in_block = x[mu] % block[mu];
            in_sub[mu] = in_block % b.sub[mu];
            if (b.split[mu]) lane |= (in_block / b.sub[mu]) << bit++;
        }
        const int place = b.place_of[lexicographic_index(block_at, b.grid)];
        lane += place % b.blocks_per_group * b.splits_per_block;
        const std::int64_t outer = std::int64_t{place / b.blocks_per_group} * b.sites_per_group +
                                   rank_in_sub[lexicographic_index(in_sub, b.sub)];
        positions[s] = static_cast<std::int32_t>(outer * lane_width + lane);
    }
    order->take_positions(std::move(positions));
    order->blocks_ = std::move(b);
    return order;
}

std::shared_ptr<const site_order> site_order::followed_by(std::int64_t more) const {
    if (more < 0) throw input_error("a site order followed by " + std::to_string(more) + " sites: must be 0 or more");
    check_places(more, extents_);                          // before anything is added to it
    const std::int64_t first = outer_sites_ * lane_width_; // storage position of the first additional site
    const std::int64_t outer = outer_sites_ + (more + lane_width_ - 1) / lane_width_;
    check_places(std::max(outer * lane_width_, volume_ + more), extents_); // half an order has fewer places than sites
    const coordinate all{static_cast<int>(volume() + more), 1, 1, 1};
    if (lexicographic_) return lexicographic(all);
    std::shared_ptr<site_order> order(new site_order);
    order->extents_ = all;
    order->whole_ = whole_;
    order->lane_width_ = lane_width_;
    order->lane_bits_ = lane_bits_;
    order->outer_sites_ = outer;
    std::vector<std::int32_t> positions(static_cast<std::size_t>(volume_ + more));
    std::ranges::copy(position_, positions.begin());
    for (std::int64_t i = 0; i < more; ++i) positions[volume_ + i] = static_cast<std::int32_t>(first + i);
    order->take_positions(std::move(positions));
    return order;
}

} // namespace halocline::lattice
