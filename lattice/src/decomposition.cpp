// SPDX-License-Identifier: Apache-2.0
#include <halocline/lattice/decomposition.hpp>

#include <halocline/base/error.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>
#include <utility>

namespace halocline::lattice {
namespace {

/// Cut units per dimension.  Err: input_error if the granularity does not divide the lattice.
coordinate units_of(const coordinate& global, const coordinate& granularity) {
    coordinate units{};
    constexpr double most_sites = 1e15;
    double sites = 1; // 64-bit integers could overflow
    for (const int extent : global) sites *= extent;
    if (sites > most_sites)
        throw input_error("lattice " + to_string(global) + " has more than 1e15 sites, which no machine can hold");
    for (int mu = 0; mu < dimensions; ++mu) {
        if (global[mu] < 1) throw input_error("lattice " + to_string(global) + ": every extent must be at least 1");
        if (granularity[mu] < 1 || global[mu] % granularity[mu] != 0)
            throw input_error("blocks of " + to_string(granularity) + " do not divide the lattice " +
                              to_string(global) + ": in " + dimension_name[mu] + ", " + std::to_string(global[mu]) +
                              " must be a multiple of " + std::to_string(granularity[mu]));
        units[mu] = global[mu] / granularity[mu];
    }
    return units;
}

/// A rank is an int; the product of four could overflow 64 bits.  Pre: n >= 1.  Err: input_error.
void check_number_of_ranks(const coordinate& global, const coordinate& rank_grid) {
    constexpr int most = std::numeric_limits<int>::max();
    if (!volume_up_to(most, rank_grid))
        throw input_error("rank grid " + to_string(rank_grid) + " cuts the lattice " + to_string(global) +
                          " over more than " + std::to_string(most) + " ranks");
}

/// Extents of the largest box when `units` are cut as evenly as possible.
coordinate largest_box(const coordinate& units, const coordinate& granularity, const coordinate& rank_grid) {
    coordinate extents{};
    for (int mu = 0; mu < dimensions; ++mu)
        extents[mu] = (1 + (units[mu] - 1) / rank_grid[mu]) * granularity[mu]; // rounded up
    return extents;
}

/// Sites that a rank with this box sends in one exchange of width 1: both faces of every cut dimension.
std::int64_t sites_per_exchange(const coordinate& extents, const coordinate& rank_grid) {
    std::int64_t sites = 0;
    for (int mu = 0; mu < dimensions; ++mu)
        if (rank_grid[mu] > 1) sites += 2 * (volume(extents) / extents[mu]);
    return sites;
}

/// All ways to write `ranks` as a product of four factors that do not exceed `units`.
std::vector<coordinate> factorisations(int ranks, const coordinate& units) {
    std::vector<coordinate> grids;
    for (int t = 1; t <= std::min(ranks, units[3]); ++t) {
        if (ranks % t != 0) continue;
        const int xyz = ranks / t;
        for (int z = 1; z <= std::min(xyz, units[2]); ++z) {
            if (xyz % z != 0) continue;
            const int xy = xyz / z;
            for (int y = 1; y <= std::min(xy, units[1]); ++y)
                if (xy % y == 0 && xy / y <= units[0]) grids.push_back({xy / y, y, z, t});
        }
    }
    return grids;
}

} // namespace

decomposition::decomposition(coordinate global, std::array<std::vector<int>, dimensions> cuts)
    : global_(global), cuts_(std::move(cuts)) {
    for (int mu = 0; mu < dimensions; ++mu) {
        const std::vector<int>& c = cuts_[mu];
        const bool increasing = std::adjacent_find(c.begin(), c.end(), std::greater_equal<>()) == c.end();
        if (c.size() < 2 || c.front() != 0 || c.back() != global_[mu] || !increasing) {
            std::string list;
            for (int cut : c) list += (list.empty() ? "" : ", ") + std::to_string(cut);
            throw input_error(std::string("cuts of dimension ") + dimension_name[mu] + " are (" + list +
                              "): they must increase from 0 to the extent " + std::to_string(global_[mu]));
        }
        rank_grid_[mu] = static_cast<int>(c.size()) - 1;
    }
    check_number_of_ranks(global_, rank_grid_);
}

decomposition decomposition::even(const coordinate& global, const coordinate& rank_grid,
                                  const coordinate& granularity) {
    const coordinate units = units_of(global, granularity);
    for (int mu = 0; mu < dimensions; ++mu)
        if (rank_grid[mu] < 1 || rank_grid[mu] > units[mu])
            throw input_error("rank grid " + to_string(rank_grid) + " does not fit the lattice " + to_string(global) +
                              ": " + dimension_name[mu] + " can be cut over 1 to " + std::to_string(units[mu]) +
                              " ranks in units of " + std::to_string(granularity[mu]) + ", not over " +
                              std::to_string(rank_grid[mu]));
    check_number_of_ranks(global, rank_grid); // before lists of cuts of that size are made
    std::array<std::vector<int>, dimensions> cuts;
    for (int mu = 0; mu < dimensions; ++mu) {
        const int least = units[mu] / rank_grid[mu], rest = units[mu] % rank_grid[mu];
        cuts[mu].reserve(static_cast<std::size_t>(rank_grid[mu]) + 1);
        for (int i = 0; i <= rank_grid[mu]; ++i) cuts[mu].push_back((i * least + std::min(i, rest)) * granularity[mu]);
    }
    return {global, std::move(cuts)};
}

decomposition decomposition::chosen(const coordinate& global, int ranks, const coordinate& granularity) {
    return even(global, choose_rank_grid(global, ranks, granularity).rank_grid, granularity);
}

int decomposition::ranks() const { return static_cast<int>(volume(rank_grid_)); }

decomposition decomposition::with_rank_order(std::vector<int> order) const {
    decomposition result = *this;
    result.placement_ = nullptr;
    if (order.empty()) return result;
    std::vector<int> place_of(static_cast<std::size_t>(ranks()), -1);
    if (order.size() != place_of.size())
        throw input_error("rank order of " + std::to_string(order.size()) + " ranks for a rank grid " +
                          to_string(rank_grid_) + ": it must name each of the " + std::to_string(ranks()) + " once");
    for (std::size_t i = 0; i < order.size(); ++i) {
        const int rank = order[i];
        if (rank < 0 || rank >= ranks() || place_of[rank] >= 0)
            throw input_error("rank order: place " + std::to_string(i) + " is given to rank " + std::to_string(rank) +
                              ", which is none of 0 to " + std::to_string(ranks() - 1) + " or has a place already");
        place_of[rank] = static_cast<int>(i);
    }
    if (std::is_sorted(order.begin(), order.end())) return result; // equal to a cut without an order
    result.placement_ = std::make_shared<placement>(placement{std::move(order), std::move(place_of)});
    return result;
}

const std::vector<int>& decomposition::rank_order() const {
    static const std::vector<int> lexicographic;
    return placement_ ? placement_->rank_at : lexicographic;
}

coordinate decomposition::grid_position(int rank) const {
    if (rank < 0 || rank >= ranks())
        throw input_error("rank " + std::to_string(rank) + " has no part of the lattice: it is cut over " +
                          std::to_string(ranks()) + (ranks() == 1 ? " rank" : " ranks") + " (rank grid " +
                          to_string(rank_grid_) + ")");
    return lexicographic_coordinate(placement_ ? placement_->place_of[rank] : rank, rank_grid_);
}

int decomposition::rank_at(const coordinate& grid_position) const {
    for (int mu = 0; mu < dimensions; ++mu)
        if (grid_position[mu] < 0 || grid_position[mu] >= rank_grid_[mu])
            throw input_error("position " + to_string(grid_position) + " is not in the rank grid " +
                              to_string(rank_grid_));
    const std::int64_t place = lexicographic_index(grid_position, rank_grid_);
    return placement_ ? placement_->rank_at[place] : static_cast<int>(place);
}

box decomposition::local_box(int rank) const {
    const coordinate position = grid_position(rank);
    box local;
    for (int mu = 0; mu < dimensions; ++mu) {
        const auto i = static_cast<std::size_t>(position[mu]);
        local.origin[mu] = cuts_[mu][i];
        local.extents[mu] = cuts_[mu][i + 1] - cuts_[mu][i];
    }
    return local;
}

int decomposition::neighbour(int rank, face f) const {
    coordinate position = grid_position(rank);
    const int step = f.end == side::high ? 1 : rank_grid_[f.mu] - 1;
    position[f.mu] = (position[f.mu] + step) % rank_grid_[f.mu];
    return rank_at(position);
}

bool decomposition::wraps(int rank, face f) const {
    return grid_position(rank)[f.mu] == (f.end == side::high ? rank_grid_[f.mu] - 1 : 0);
}

int decomposition::owner(const coordinate& global_site) const {
    coordinate position{};
    for (int mu = 0; mu < dimensions; ++mu) {
        if (global_site[mu] < 0 || global_site[mu] >= global_[mu])
            throw input_error("site " + to_string(global_site) + " is not on the lattice " + to_string(global_));
        const auto next = std::upper_bound(cuts_[mu].begin(), cuts_[mu].end(), global_site[mu]);
        position[mu] = static_cast<int>(next - cuts_[mu].begin()) - 1;
    }
    return rank_at(position);
}

std::vector<coordinate> admissible_rank_grids(const coordinate& global, int ranks, const coordinate& granularity) {
    if (ranks < 1) throw input_error("number of ranks is " + std::to_string(ranks) + ": it must be at least 1");
    const coordinate units = units_of(global, granularity);
    std::vector<coordinate> grids = factorisations(ranks, units);
    const auto key = [&](const coordinate& g) {
        return std::tuple(sites_per_exchange(largest_box(units, granularity, g), g), -g[3], -g[2], -g[1]);
    };
    std::sort(grids.begin(), grids.end(), [&](const coordinate& a, const coordinate& b) { return key(a) < key(b); });
    return grids;
}

rank_grid_choice choose_rank_grid(const coordinate& global, int ranks, const coordinate& granularity) {
    const std::vector<coordinate> grids = admissible_rank_grids(global, ranks, granularity);
    const coordinate units = units_of(global, granularity);
    if (grids.empty()) {
        int fewer = static_cast<int>(std::min<std::int64_t>(ranks - 1, volume(units)));
        while (factorisations(fewer, units).empty()) --fewer; // ends at 1 at the latest
        throw input_error("lattice " + to_string(global) + " in units of " + to_string(granularity) +
                          " can't be cut over " + std::to_string(ranks) +
                          " ranks: the largest admissible number below is " + std::to_string(fewer) + " (rank grid " +
                          to_string(admissible_rank_grids(global, fewer, granularity).front()) + ")");
    }

    const auto sites = [&](const coordinate& g) { return sites_per_exchange(largest_box(units, granularity, g), g); };
    rank_grid_choice choice{grids.front(), {}};
    choice.why = "rank grid " + to_string(choice.rank_grid) + " of " + std::to_string(grids.size()) +
                 " admissible: largest box " + to_string(largest_box(units, granularity, choice.rank_grid)) +
                 " sends " + std::to_string(sites(choice.rank_grid)) + " sites per exchange";
    if (grids.size() > 1) {
        choice.why += sites(grids[1]) == sites(grids[0]) ? ", as many as the next, " : "; next is ";
        choice.why += to_string(grids[1]);
        choice.why += sites(grids[1]) == sites(grids[0]) ? " (ties cut t first, then z, y, x)"
                                                         : " with " + std::to_string(sites(grids[1]));
    }
    return choice;
}

} // namespace halocline::lattice
