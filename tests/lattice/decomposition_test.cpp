// SPDX-License-Identifier: Apache-2.0
#include <halocline/base/error.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline_test/refusal.hpp>

#include <gtest/gtest.h>

#include <random>
#include <string>

using namespace halocline::lattice;
using halocline::input_error;
using halocline_test::refusal;

TEST(Decomposition, UnevenCutGivesFirstRanksOneUnitMore) {
    const auto cut = decomposition::even({8, 8, 8, 8}, {1, 1, 1, 3}, {2, 2, 2, 2});

    EXPECT_EQ(cut.cuts(3), (std::vector{0, 4, 6, 8})); // 2 + 1 + 1 units
    EXPECT_EQ(cut.local_box(0), (box{{0, 0, 0, 0}, {8, 8, 8, 4}}));
    EXPECT_EQ(cut.local_box(2), (box{{0, 0, 0, 6}, {8, 8, 8, 2}}));
}

TEST(Decomposition, EverySiteBelongsToTheOneBoxThatContainsIt) {
    std::mt19937 random(1);
    const auto draw = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    for (int trial = 0; trial < 50; ++trial) {
        coordinate global{}, grid{}, unit{};
        for (int mu = 0; mu < dimensions; ++mu) {
            unit[mu] = draw(1, 2);
            const int units = draw(1, 4);
            global[mu] = units * unit[mu];
            grid[mu] = draw(1, units);
        }
        const auto cut = decomposition::even(global, grid, unit);

        std::int64_t sites = 0;
        for (int rank = 0; rank < cut.ranks(); ++rank) sites += cut.local_box(rank).volume();

        EXPECT_EQ(sites, volume(global));
        for (std::int64_t s = 0; s < volume(global); ++s) {
            const coordinate x = lexicographic_coordinate(s, global);
            ASSERT_TRUE(cut.local_box(cut.owner(x)).contains(x));
        }
    }
}

TEST(Decomposition, RefusesSitesAndPlacesThatThereAreNot) {
    const auto cut = decomposition::even({6, 4, 5, 2}, {3, 2, 1, 2});
    for (int mu = 0; mu < dimensions; ++mu)
        for (const bool beyond : {false, true}) {
            coordinate site{}, place{};
            site[mu] = beyond ? cut.global()[mu] : -1;
            place[mu] = beyond ? cut.rank_grid()[mu] : -1;
            EXPECT_THROW((void)cut.owner(site), input_error) << to_string(site);
            EXPECT_THROW((void)cut.rank_at(place), input_error) << to_string(place);
        }
}

TEST(Decomposition, NeighboursAreMutualAndWrapAtTheEdge) {
    const auto cut = decomposition::even({6, 4, 5, 2}, {3, 2, 1, 2});
    for (int rank = 0; rank < cut.ranks(); ++rank) {
        EXPECT_EQ(cut.rank_at(cut.grid_position(rank)), rank);
        for (int i = 0; i < faces; ++i) {
            const face f = face_of(i);
            const int other = cut.neighbour(rank, f);
            const box here = cut.local_box(rank), there = cut.local_box(other);
            const int beyond = f.end == side::high ? here.origin[f.mu] + here.extents[f.mu] : here.origin[f.mu] - 1;

            EXPECT_EQ(cut.neighbour(other, f.opposite()), rank);
            EXPECT_EQ(cut.wraps(rank, f), beyond < 0 || beyond == cut.global()[f.mu]);
            coordinate x = here.origin;
            x[f.mu] = (beyond + cut.global()[f.mu]) % cut.global()[f.mu];
            EXPECT_TRUE(there.contains(x));
        }
    }
}

TEST(Decomposition, RefusesCutsThatDoNotPartition) {
    const std::vector<int> whole{0, 4};
    for (const std::vector<int>& bad : {std::vector<int>{}, {0}, {0, 3}, {1, 4}, {0, 2, 2, 4}, {0, 3, 2, 4}})
        EXPECT_NE(refusal([&] {
                      decomposition({4, 4, 4, 4}, {whole, whole, bad, whole});
                  }).find("cuts of dimension z are ("),
                  std::string::npos);
    EXPECT_EQ(refusal([&] {
                  decomposition({4, 4, 4, 4}, {whole, whole, {0, 3, 2, 4}, whole});
              }),
              "cuts of dimension z are (0, 3, 2, 4): they must increase from 0 to the extent 4");
    const auto refused = [](const coordinate& global, const coordinate& rank_grid, const coordinate& unit) {
        return refusal([&] { decomposition::even(global, rank_grid, unit); });
    };
    EXPECT_EQ(
        refused({4, 4, 4, 8}, {1, 1, 1, 5}, {1, 1, 1, 2}),
        "rank grid 1.1.1.5 does not fit the lattice 4.4.4.8: t can be cut over 1 to 4 ranks in units of 2, not over "
        "5");
    EXPECT_EQ(
        refused({4, 4, 4, 4}, {1, 1, 0, 1}, {1, 1, 1, 1}),
        "rank grid 1.1.0.1 does not fit the lattice 4.4.4.4: z can be cut over 1 to 4 ranks in units of 1, not over "
        "0");
    EXPECT_EQ(refused({4, 4, 4, 4}, {1, 1, 1, 1}, {3, 1, 1, 1}),
              "blocks of 3.1.1.1 do not divide the lattice 4.4.4.4: in x, 4 must be a multiple of 3");
    EXPECT_EQ(refused({4, 0, 4, 4}, {1, 1, 1, 1}, {1, 1, 1, 1}), "lattice 4.0.4.4: every extent must be at least 1");
    EXPECT_EQ(refused({65536, 65536, 65536, 65536}, {1, 1, 1, 2}, {1, 1, 1, 1}), // 2^64 sites
              "lattice 65536.65536.65536.65536 has more than 1e15 sites, which no machine can hold");
}

TEST(Decomposition, ARankThatHasNoPartIsRefused) {
    const decomposition cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    for (const decomposition& c : {cut, cut.with_rank_order({1, 0})})
        for (const int rank : {-1, 2, 1000}) {
            EXPECT_THROW((void)c.local_box(rank), input_error);
            EXPECT_THROW((void)c.grid_position(rank), input_error);
            EXPECT_THROW((void)c.neighbour(rank, {3, side::low}), input_error);
        }
    try {
        (void)cut.local_box(2);
    } catch (const input_error& e) {
        EXPECT_STREQ(e.what(), "rank 2 has no part of the lattice: it is cut over 2 ranks (rank grid 1.1.1.2)");
    }
}

TEST(Decomposition, MoreRanksThanAnIntHoldsAreRefusedThoughTheirNumberWraps) {
    try {
        decomposition::even({1 << 16, 1 << 16, 1 << 16, 1}, {1 << 16, 1 << 16, 1, 1}); // 2^32 wraps to 0 in 32 bits
        FAIL() << "accepted";
    } catch (const input_error& e) {
        EXPECT_NE(std::string(e.what()).find("more than 2147483647 ranks"), std::string::npos) << e.what();
    }
}

TEST(RankGrid, FewestSitesFirstAndTiesCutTFirst) {
    EXPECT_EQ(choose_rank_grid({8, 8, 8, 8}, 2).rank_grid, (coordinate{1, 1, 1, 2}));
    EXPECT_EQ(choose_rank_grid({8, 8, 8, 8}, 4).rank_grid, (coordinate{1, 1, 1, 4})); // as many sites as 1.1.2.2
    EXPECT_EQ(choose_rank_grid({8, 8, 8, 8}, 4, {4, 4, 4, 4}).rank_grid, (coordinate{1, 1, 2, 2}));
    EXPECT_EQ(choose_rank_grid({16, 8, 8, 8}, 2).rank_grid, (coordinate{2, 1, 1, 1}));
    EXPECT_EQ(choose_rank_grid({8, 8, 8, 8}, 3, {2, 2, 2, 2}).rank_grid, (coordinate{1, 1, 1, 3}));
}

TEST(RankGrid, OfTheLongestLatticeIsChosenWithoutOverflow) {
    const auto choice = choose_rank_grid({2147483647, 1, 1, 1}, 2);

    EXPECT_EQ(choice.rank_grid, (coordinate{2, 1, 1, 1}));
    EXPECT_EQ(choice.why, "rank grid 2.1.1.1 of 1 admissible: largest box 1073741824.1.1.1 sends 2 sites per exchange");
}

TEST(RankGrid, TheChosenOneIsCutEvenly) {
    const coordinate global{8, 8, 8, 20}, blocks{4, 4, 4, 2};

    EXPECT_EQ(decomposition::chosen(global, 1).ranks(), 1);
    EXPECT_EQ(decomposition::chosen(global, 3), decomposition::even(global, {1, 1, 1, 3}));
    EXPECT_EQ(decomposition::chosen(global, 3, blocks).cuts(3), (std::vector<int>{0, 8, 14, 20}));
    EXPECT_THROW((void)decomposition::chosen(global, 7, {8, 8, 8, 4}), input_error);
}

TEST(RankGrid, ListHoldsExactlyTheGridsThatFit) {
    const coordinate global{4, 6, 2, 12}, unit{2, 2, 2, 4};
    for (int ranks = 1; ranks <= 20; ++ranks) {
        const auto grids = admissible_rank_grids(global, ranks, unit);
        std::size_t expected = 0;
        for (int x = 1; x <= 2; ++x)
            for (int y = 1; y <= 3; ++y)
                for (int t = 1; t <= 3; ++t) expected += x * y * t == ranks ? 1 : 0;

        EXPECT_EQ(grids.size(), expected) << ranks;
        for (const coordinate& g : grids) EXPECT_EQ(decomposition::even(global, g, unit).ranks(), ranks);
    }
}

TEST(RankGrid, RefusalNamesTheLargestAdmissibleNumber) {
    try {
        (void)choose_rank_grid({8, 8, 8, 8}, 7, {2, 2, 2, 2});
        FAIL() << "7 ranks can't share 4 units per dimension";
    } catch (const input_error& e) {
        EXPECT_NE(std::string(e.what()).find("below is 6"), std::string::npos) << e.what();
    }
    EXPECT_THROW((void)choose_rank_grid({8, 8, 8, 8}, 0), input_error);
}

TEST(RankGrid, ReasonNamesTheGridAndItsCost) {
    const auto choice = choose_rank_grid({8, 8, 8, 8}, 2);

    EXPECT_NE(choice.why.find("1.1.1.2"), std::string::npos);
    EXPECT_NE(choice.why.find("1024 sites"), std::string::npos);
}
