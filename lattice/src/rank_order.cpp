// SPDX-License-Identifier: Apache-2.0
#include <halocline/lattice/rank_order.hpp>

#include <halocline/base/error.hpp>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

namespace halocline::lattice {
namespace {

constexpr int seeds = 16;      // number of places from which nodes are grown
constexpr int few_ranks = 256; // up to this number every start is refined, beyond it only the best

/// The node of every place of the rank grid.
using assignment = std::vector<int>;

/// The exchange as a graph over the places of the rank grid. Both ends of an edge send the same number of sites,
/// because boxes of one grid line have equal cross-sections.
class exchange_graph {
  public:
    struct edge {
        int to;
        std::int64_t sites;
    };

    explicit exchange_graph(const decomposition& cut) : edges_(static_cast<std::size_t>(cut.ranks())) {
        for (int rank = 0; rank < cut.ranks(); ++rank) {
            const box local = cut.local_box(rank);
            const int place = place_of(cut, rank);
            for (int i = 0; i < faces; ++i) {
                const face f = face_of(i);
                const int to = place_of(cut, cut.neighbour(rank, f));
                if (to != place) edges_[place].push_back({to, local.volume() / local.extents[f.mu]});
            }
        }
    }

    [[nodiscard]] int places() const { return static_cast<int>(edges_.size()); }
    [[nodiscard]] const std::vector<edge>& edges(int place) const { return edges_[place]; }

    /// Number of sites that leave their node.
    [[nodiscard]] std::int64_t cost(const assignment& node) const {
        std::int64_t sites = 0;
        for (int place = 0; place < places(); ++place)
            for (const edge& e : edges_[place])
                if (node[place] != node[e.to]) sites += e.sites;
        return sites;
    }

    /// How many fewer sites, counted at one end, leave their node if two places of different nodes swap nodes.
    [[nodiscard]] std::int64_t gain(const assignment& node, int a, int b) const {
        const auto from = [&](int place, int other) {
            std::int64_t sites = 0;
            for (const edge& e : edges_[place]) {
                if (e.to == other) continue; // they are still on two nodes
                if (node[e.to] == node[other]) sites += e.sites;
                if (node[e.to] == node[place]) sites -= e.sites;
            }
            return sites;
        };
        return from(a, b) + from(b, a);
    }

  private:
    static int place_of(const decomposition& cut, int rank) {
        return static_cast<int>(lexicographic_index(cut.grid_position(rank), cut.rank_grid()));
    }
    std::vector<std::vector<edge>> edges_;
};

/// Given node numbers -> 0, 1, … by first rank.
assignment numbered(const decomposition& cut, std::span<const int> nodes) {
    if (nodes.size() != static_cast<std::size_t>(cut.ranks()))
        throw input_error("rank order: nodes of " + std::to_string(nodes.size()) +
                          " ranks are given, the lattice is cut over " + std::to_string(cut.ranks()) +
                          ": each rank needs one");
    std::vector<std::pair<int, int>> first; // node, first rank
    for (int rank = 0; rank < cut.ranks(); ++rank) first.emplace_back(nodes[rank], rank);
    std::sort(first.begin(), first.end());
    first.erase(
        std::unique(first.begin(), first.end(), [](const auto& a, const auto& b) { return a.first == b.first; }),
        first.end());
    std::vector<int> by_rank(first.size());
    std::iota(by_rank.begin(), by_rank.end(), 0);
    std::sort(by_rank.begin(), by_rank.end(), [&](int a, int b) { return first[a].second < first[b].second; });
    std::vector<int> number(first.size());
    for (std::size_t i = 0; i < by_rank.size(); ++i) number[by_rank[i]] = static_cast<int>(i);
    assignment result;
    for (const int node : nodes)
        result.push_back(number[std::lower_bound(first.begin(), first.end(), std::pair(node, 0)) - first.begin()]);
    return result;
}

/// Swaps ranks of neighbouring nodes while that gains something. Considering neighbouring nodes suffices: in a swap
/// that gains, at least one of the two moves to a node where it has a neighbour.
void refine(const exchange_graph& graph, assignment& node, int nodes) {
    std::vector<std::vector<int>> places_of(static_cast<std::size_t>(nodes));
    for (int place = 0; place < graph.places(); ++place) places_of[node[place]].push_back(place);
    const auto best_change = [&](int place) {
        std::int64_t most = 0;
        int with = -1;
        for (const auto& e : graph.edges(place)) {
            if (node[e.to] == node[place]) continue;
            for (const int other : places_of[node[e.to]])
                if (const std::int64_t g = graph.gain(node, place, other); g > most) {
                    most = g;
                    with = other;
                }
        }
        return with;
    };
    for (bool changed = true; changed;) { // each change lowers the cost, so this terminates
        changed = false;
        for (int place = 0; place < graph.places(); ++place) {
            const int with = best_change(place);
            if (with < 0) continue;
            std::ranges::replace(places_of[node[place]], place, with);
            std::ranges::replace(places_of[node[with]], with, place);
            std::swap(node[place], node[with]);
            changed = true;
        }
    }
}

/// Tilings of the rank grid by boxes of `size` ranks, one node each.
std::vector<assignment> tilings(const coordinate& grid, int size) {
    std::vector<assignment> found;
    for (std::int64_t b = 0; b < volume(grid); ++b) {
        coordinate tile = lexicographic_coordinate(b, grid), tiles{};
        bool fits = true;
        for (int mu = 0; mu < dimensions; ++mu) {
            ++tile[mu];
            fits = fits && grid[mu] % tile[mu] == 0;
            tiles[mu] = grid[mu] / tile[mu];
        }
        if (!fits || volume(tile) != size) continue;
        assignment& node = found.emplace_back();
        for (std::int64_t place = 0; place < volume(grid); ++place) {
            coordinate at = lexicographic_coordinate(place, grid);
            for (int mu = 0; mu < dimensions; ++mu) at[mu] /= tile[mu];
            node.push_back(static_cast<int>(lexicographic_index(at, tiles)));
        }
    }
    return found;
}

/// Grows nodes one after the other in the order of `sequence`, each place by place, from place `first_free` on: the
/// next place is the free one with the most sites towards the node minus those towards free places, so that the rest
/// stays compact.
assignment grown(const exchange_graph& graph, const std::vector<int>& sizes, const std::vector<int>& sequence,
                 int first_free) {
    constexpr int none = -1;
    assignment node(static_cast<std::size_t>(graph.places()), none);
    for (const int n : sequence) {
        std::vector<int> frontier; // free neighbours of the node, in order
        for (int taken = 0; taken < sizes[n]; ++taken) {
            while (node[first_free] != none) first_free = (first_free + 1) % graph.places();
            int next = first_free;
            std::int64_t most = 0;
            bool any = false;
            for (const int place : frontier) {
                std::int64_t sites = 0;
                for (const auto& e : graph.edges(place))
                    sites += node[e.to] == n ? e.sites : node[e.to] == none ? -e.sites : 0;
                if (any && sites <= most) continue;
                any = true;
                most = sites;
                next = place;
            }
            node[next] = n;
            std::erase(frontier, next);
            for (const auto& e : graph.edges(next))
                if (node[e.to] == none && std::ranges::find(frontier, e.to) == frontier.end()) frontier.push_back(e.to);
        }
    }
    return node;
}

} // namespace

std::int64_t off_node_sites(const decomposition& cut, std::span<const int> nodes) {
    const assignment of_rank = numbered(cut, nodes);
    assignment of_place;
    for (int place = 0; place < cut.ranks(); ++place)
        of_place.push_back(of_rank[cut.rank_at(lexicographic_coordinate(place, cut.rank_grid()))]);
    return exchange_graph(cut).cost(of_place);
}

std::vector<int> rank_order_by_nodes(const decomposition& cut, std::span<const int> nodes) {
    const assignment lexicographic = numbered(cut, nodes);
    const int count = *std::max_element(lexicographic.begin(), lexicographic.end()) + 1;
    std::vector<std::vector<int>> ranks_of(static_cast<std::size_t>(count));
    for (int rank = 0; rank < cut.ranks(); ++rank) ranks_of[lexicographic[rank]].push_back(rank);
    std::vector<int> sizes;
    for (const auto& ranks : ranks_of) sizes.push_back(static_cast<int>(ranks.size()));

    const exchange_graph graph(cut);
    assignment best = lexicographic;
    std::int64_t least = graph.cost(best);
    std::vector<assignment> starts{lexicographic};
    if (count > 1) {
        if (std::ranges::all_of(sizes, [&](int size) { return size == sizes[0]; }))
            for (assignment& tiling : tilings(cut.rank_grid(), sizes[0])) starts.push_back(std::move(tiling));
        std::vector<int> sequence(sizes.size());
        std::iota(sequence.begin(), sequence.end(), 0);
        std::ranges::stable_sort(sequence, std::greater<>(), [&](int node) { return sizes[node]; });
        for (int largest_first = 0; largest_first < 2; ++largest_first, std::ranges::reverse(sequence))
            for (int seed = 0; seed < std::min(cut.ranks(), seeds); ++seed)
                starts.push_back(grown(graph, sizes, sequence, seed * cut.ranks() / std::min(cut.ranks(), seeds)));
    }
    if (cut.ranks() > few_ranks)
        starts = {*std::ranges::min_element(starts, {}, [&](const assignment& node) { return graph.cost(node); })};
    for (assignment& node : starts) {
        refine(graph, node, count);
        if (const std::int64_t cost = graph.cost(node); cost < least) {
            least = cost;
            best = node;
        }
    }

    std::vector<int> order, next(ranks_of.size(), 0);
    for (const int node : best) order.push_back(ranks_of[node][next[node]++]);
    return order;
}

std::vector<int> row_major_rank_order(const coordinate& rank_grid) {
    constexpr int most = std::numeric_limits<int>::max();
    for (const int extent : rank_grid)
        if (extent < 1)
            throw input_error("rank order: rank grid " + to_string(rank_grid) + ": every extent must be at least 1");
    const std::optional<std::int64_t> ranks = volume_up_to(most, rank_grid);
    if (!ranks)
        throw input_error("rank order: rank grid " + to_string(rank_grid) + " has more than " + std::to_string(most) +
                          " ranks");
    const auto reversed = [](coordinate c) {
        std::ranges::reverse(c);
        return c;
    };
    std::vector<int> order;
    order.reserve(static_cast<std::size_t>(*ranks));
    for (std::int64_t place = 0; place < *ranks; ++place)
        order.push_back(static_cast<int>(
            lexicographic_index(reversed(lexicographic_coordinate(place, rank_grid)), reversed(rank_grid))));
    return order;
}

} // namespace halocline::lattice
