// SPDX-License-Identifier: Apache-2.0
// Rank orders that keep bytes on their node, compared with all possible ones where these can be enumerated; and the
// order of MPI's Cartesian communicators, compared with what the standard says of it.
#include <halocline/base/error.hpp>
#include <halocline/lattice/rank_order.hpp>
#include <halocline_test/refusal.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>

using namespace halocline::lattice;
using halocline_test::refusal;

namespace {

/// Number of sites sent to other nodes, straight from the neighbours.
std::int64_t counted(const decomposition& cut, const std::vector<int>& nodes) {
    std::int64_t sites = 0;
    for (int rank = 0; rank < cut.ranks(); ++rank)
        for (int i = 0; i < faces; ++i) {
            const box local = cut.local_box(rank);
            if (nodes[cut.neighbour(rank, face_of(i))] != nodes[rank])
                sites += local.volume() / local.extents[face_of(i).mu];
        }
    return sites;
}

/// The least over all ways of assigning places to nodes.
std::int64_t least(const decomposition& cut, std::vector<int> nodes) {
    std::sort(nodes.begin(), nodes.end()); // which rank of a node has a place makes no difference
    std::int64_t sites = std::numeric_limits<std::int64_t>::max();
    do sites = std::min(sites, counted(cut, nodes));
    while (std::next_permutation(nodes.begin(), nodes.end()));
    return sites;
}

/// MPI_Cart_coords: "row-major numbering is always used", so the last dimension runs fastest.
coordinate cart_coords(int rank, const coordinate& dims) {
    coordinate coords{};
    int ranks = dims[0] * dims[1] * dims[2] * dims[3];
    for (int i = 0; i < dimensions; ++i) {
        ranks /= dims[i]; // with the same first i + 1 coordinates
        coords[i] = rank / ranks;
        rank %= ranks;
    }
    return coords;
}

/// MPI_Cart_shift(cart, mu, 1, …) of a periodic dimension: the ranks below and above.
std::pair<int, int> cart_shift(int rank, int mu, const coordinate& dims) {
    int distance = 1;
    for (int i = mu + 1; i < dimensions; ++i) distance *= dims[i];
    const int at = cart_coords(rank, dims)[mu];
    return {rank + distance * (at == 0 ? dims[mu] - 1 : -1), rank + distance * (at == dims[mu] - 1 ? 1 - dims[mu] : 1)};
}

decomposition random_cut(std::mt19937& random, int ranks) {
    const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    coordinate grid{1, 1, 1, 1}, global{};
    for (int rest = ranks, p = 2; rest > 1;) {
        if (rest % p != 0)
            ++p;
        else {
            grid[draw(0, 3)] *= p;
            rest /= p;
        }
    }
    std::array<std::vector<int>, dimensions> cuts;
    for (int mu = 0; mu < dimensions; ++mu) {
        for (int i = 0; i <= grid[mu]; ++i) cuts[mu].push_back(i == 0 ? 0 : cuts[mu].back() + draw(1, 6));
        global[mu] = cuts[mu].back();
    }
    return {global, cuts};
}

} // namespace

TEST(RankOrder, IsTheBestOfAllOnSmallGridsButForFewUnequalNodes) {
    std::mt19937 random(5);
    int gained = 0, missed = 0;
    for (int trial = 0; trial < 300; ++trial) {
        const int ranks = std::uniform_int_distribution<int>(2, 8)(random);
        const decomposition cut = random_cut(random, ranks);
        std::vector<int> nodes;
        for (int rank = 0; rank < ranks; ++rank)
            nodes.push_back(std::uniform_int_distribution<int>(0, 1 + trial % 3)(random));

        const auto order = rank_order_by_nodes(cut, nodes);
        const decomposition ordered = cut.with_rank_order(order);

        EXPECT_EQ(off_node_sites(cut, nodes), counted(cut, nodes));
        EXPECT_EQ(off_node_sites(ordered, nodes), counted(ordered, nodes));
        const std::int64_t best = least(cut, nodes), ours = counted(ordered, nodes);
        EXPECT_LE(static_cast<double>(ours), 1.25 * static_cast<double>(best))
            << to_string(cut.rank_grid()) << ", trial " << trial;
        missed += ours != best;
        gained += counted(ordered, nodes) < counted(cut, nodes);
    }
    EXPECT_GT(gained, 100);
    EXPECT_LE(missed, 3); // a descent may end next to the optimum
}

TEST(RankOrder, IsTheBestOfAllForEqualNodesOnSmallGrids) {
    std::mt19937 random(6);
    for (int trial = 0; trial < 200; ++trial) {
        const int ranks = std::array{4, 6, 8}[trial % 3], count = trial % 6 == 5                 ? 4
                                                                  : ranks == 6 && trial % 2 == 0 ? 3
                                                                                                 : 2;
        const decomposition cut = random_cut(random, ranks);
        std::vector<int> nodes;
        for (int rank = 0; rank < ranks; ++rank) nodes.push_back(rank % count);

        const decomposition ordered = cut.with_rank_order(rank_order_by_nodes(cut, nodes));

        EXPECT_EQ(counted(ordered, nodes), least(cut, nodes)) << to_string(cut.rank_grid()) << ", trial " << trial;
    }
}

TEST(RankOrder, EqualNodesTakeBoxes) {
    const auto cut = decomposition::even({32, 32, 32, 32}, {4, 4, 4, 4});
    std::vector<int> nodes(256);
    for (int rank = 0; rank < 256; ++rank) nodes[rank] = rank % 8; // dealt out one by one, like mpirun --map-by node

    const auto ordered = cut.with_rank_order(rank_order_by_nodes(cut, nodes));

    const std::int64_t face_sites = 8 * 8 * 8;
    EXPECT_EQ(off_node_sites(cut, nodes), 256 * 4 * face_sites); // all faces in x and y
    EXPECT_EQ(off_node_sites(ordered, nodes),
              256 * 3 * face_sites); // e.g. boxes of 2.2.2.4: one face in x, y and z
}

TEST(RankOrder, NeverCostsMoreThanLexicographicAndKeepsRanksOfANodeInOrder) {
    std::mt19937 random(7);
    for (int trial = 0; trial < 60; ++trial) {
        const int ranks = std::array{12, 16, 24, 36, 64, 96}[trial % 6];
        const decomposition cut = random_cut(random, ranks);
        std::vector<int> nodes;
        for (int rank = 0; rank < ranks; ++rank) // unequal, with a node that comes twice, and numbers with gaps
            nodes.push_back(7 * (rank / (3 + trial % 5) % 5));

        const auto order = rank_order_by_nodes(cut, nodes);

        EXPECT_LE(off_node_sites(cut.with_rank_order(order), nodes), off_node_sites(cut, nodes));
        EXPECT_EQ(order, rank_order_by_nodes(cut, nodes));
        for (std::size_t i = 0; i < order.size(); ++i)
            for (std::size_t k = i + 1; k < order.size(); ++k)
                ASSERT_TRUE(nodes[order[i]] != nodes[order[k]] || order[i] < order[k]);
    }
}

TEST(RankOrder, OneNodeKeepsTheLexicographicOrder) {
    const auto cut = decomposition::even({8, 8, 8, 8}, {1, 2, 2, 2});
    EXPECT_EQ(cut.with_rank_order(rank_order_by_nodes(cut, std::vector<int>(8, 3))), cut);
    EXPECT_EQ(refusal([&] { static_cast<void>(rank_order_by_nodes(cut, std::vector<int>(7, 3))); }),
              "rank order: nodes of 7 ranks are given, the lattice is cut over 8: each rank needs one");
}

TEST(RankOrder, APermutedCutIsTheSameCutOfOtherRanks) {
    std::mt19937 random(11);
    for (int trial = 0; trial < 30; ++trial) {
        const decomposition cut = random_cut(random, 12);
        std::vector<int> order(12);
        std::iota(order.begin(), order.end(), 0);
        std::shuffle(order.begin(), order.end(), random);

        const decomposition permuted = cut.with_rank_order(order);

        for (int place = 0; place < 12; ++place) {
            const int rank = order[place];
            EXPECT_EQ(permuted.local_box(rank), cut.local_box(place));
            EXPECT_EQ(permuted.rank_at(permuted.grid_position(rank)), rank);
            EXPECT_EQ(permuted.owner(cut.local_box(place).origin), rank);
            for (int i = 0; i < faces; ++i) {
                EXPECT_EQ(permuted.neighbour(rank, face_of(i)), order[cut.neighbour(place, face_of(i))]);
                EXPECT_EQ(permuted.wraps(rank, face_of(i)), cut.wraps(place, face_of(i)));
            }
        }
        EXPECT_EQ(permuted.with_rank_order({}), cut);
        EXPECT_EQ(permuted == cut, std::is_sorted(order.begin(), order.end()));
    }
}

TEST(RankOrder, WhatIsNoPermutationIsRefused) {
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 4});
    const auto refused = [&](const std::vector<int>& bad) {
        return refusal([&] { static_cast<void>(cut.with_rank_order(bad)); });
    };
    const std::string why = ", which is none of 0 to 3 or has a place already";
    EXPECT_EQ(refused({0, 1, 2}), "rank order of 3 ranks for a rank grid 1.1.1.4: it must name each of the 4 once");
    EXPECT_EQ(refused({0, 1, 2, 2}), "rank order: place 3 is given to rank 2" + why);
    EXPECT_EQ(refused({0, 1, 2, 4}), "rank order: place 3 is given to rank 4" + why);
    EXPECT_EQ(refused({-1, 1, 2, 3}), "rank order: place 0 is given to rank -1" + why);
}

TEST(RankOrder, RowMajorIsThatOfMpisCartesianCommunicators) {
    std::mt19937 random(13);
    for (const int ranks : {1, 2, 6, 12, 30, 36, 64, 210})
        for (int trial = 0; trial < 10; ++trial) {
            const decomposition lexicographic = random_cut(random, ranks); // uneven
            const coordinate grid = lexicographic.rank_grid();

            const decomposition cut = lexicographic.with_rank_order(row_major_rank_order(grid));

            for (int rank = 0; rank < ranks; ++rank) {
                const coordinate at = cart_coords(rank, grid);
                EXPECT_EQ(cut.grid_position(rank), at);
                EXPECT_EQ(cut.rank_at(at), rank);
                EXPECT_EQ(cut.local_box(rank), lexicographic.local_box(lexicographic.rank_at(at)));
                for (int mu = 0; mu < dimensions; ++mu) {
                    const auto [below, above] = cart_shift(rank, mu, grid);
                    EXPECT_EQ(cut.neighbour(rank, {mu, side::low}), below);
                    EXPECT_EQ(cut.neighbour(rank, {mu, side::high}), above);
                }
            }
        }
}

/// A communicator with the dimensions t, z, y, x needs no order.
TEST(RankOrder, LexicographicIsRowMajorOfReversedDimensions) {
    const auto cut = decomposition::even({8, 9, 10, 11}, {2, 3, 1, 5});
    for (int rank = 0; rank < cut.ranks(); ++rank) {
        coordinate at = cart_coords(rank, {5, 1, 3, 2});
        std::ranges::reverse(at);
        EXPECT_EQ(cut.grid_position(rank), at);
    }
}

TEST(RankOrder, RowMajorInNumbers) {
    EXPECT_EQ(row_major_rank_order({2, 3, 1, 1}), (std::vector<int>{0, 3, 1, 4, 2, 5}));
    EXPECT_EQ(row_major_rank_order({1, 1, 1, 3}), (std::vector<int>{0, 1, 2}));
}

TEST(RankOrder, AGridThatCantBeCountedIsRefused) {
    const auto refused = [](const coordinate& grid) {
        return refusal([&] { static_cast<void>(row_major_rank_order(grid)); });
    };
    EXPECT_EQ(refused({2, 0, 1, 1}), "rank order: rank grid 2.0.1.1: every extent must be at least 1");
    EXPECT_EQ(refused({65536, 65536, 65536, 65536}),
              "rank order: rank grid 65536.65536.65536.65536 has more than 2147483647 ranks");
}
