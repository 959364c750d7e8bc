// SPDX-License-Identifier: Apache-2.0
// Lists of positions in compressed form: nothing is lost, and faces of boxes are short.
#include <halocline/halo/detail/position_list.hpp>
#include <halocline/lattice/geometry.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

using halocline::halo::position_list;
using halocline::halo::position_run;
namespace lattice = halocline::lattice;

namespace {

constexpr unsigned seed = 19070704;

int drawn(std::mt19937& g, int low, int high) {
    return low + static_cast<int>(g() % static_cast<unsigned>(high - low + 1));
}

/// A few pieces in a row: neighbours, equal distances (including negative and 0), anything.
std::vector<std::int64_t> random_list(std::mt19937& g) {
    std::vector<std::int64_t> list;
    for (int pieces = drawn(g, 0, 4); pieces > 0; --pieces) {
        std::int64_t position = drawn(g, 0, 40);
        const int kind = drawn(g, 0, 2), stride = drawn(g, -3, 9), row = drawn(g, 1, 5);
        for (int i = drawn(g, 0, 30); i > 0; --i) {
            list.push_back(position);
            position = kind == 0 ? position + 1 : kind == 1 ? position + (i % row == 0 ? stride : 1) : drawn(g, 0, 200);
        }
    }
    return list;
}

} // namespace

TEST(PositionList, ExpandsToWhatItWasMadeOf) {
    std::mt19937 g(seed);
    for (int k = 0; k < 2000; ++k) {
        const std::vector<std::int64_t> list = random_list(g);
        const position_list in_short(list);
        const position_list again(std::vector<position_run>(in_short.runs().begin(), in_short.runs().end()));

        ASSERT_EQ(in_short.expanded(), list) << "case " << k;
        ASSERT_EQ(in_short.size(), std::ssize(list));
        ASSERT_EQ(again.expanded(), list);
        ASSERT_EQ(again.size(), std::ssize(list));
    }
}

TEST(PositionList, CountsRunsOfNeighbours) {
    std::mt19937 g(seed + 1);
    for (int k = 0; k < 2000; ++k) {
        const std::vector<std::int64_t> list = random_list(g);
        std::int64_t runs = 0;
        bool counted = true;
        for (std::size_t i = 0; i < list.size(); ++i) {
            runs += i == 0 || list[i] != list[i - 1] + 1;
            counted = counted && list[i] == static_cast<std::int64_t>(i);
        }
        const position_list in_short(list);

        ASSERT_EQ(in_short.count_runs(), runs) << "case " << k;
        ASSERT_EQ(in_short.is_counted(), counted) << "case " << k;
        if (!list.empty()) {
            ASSERT_TRUE(std::ranges::count(list, in_short.probe_position()) > 0) << "case " << k;
        }
    }
    EXPECT_TRUE(position_list::counted(7).is_counted());
    EXPECT_EQ(position_list::counted(7).size(), 7);
    EXPECT_EQ(position_list::counted(0).size(), 0);
}

TEST(PositionList, AFaceOfABoxTakesAnEntryPerPlaneAtMost) {
    const lattice::coordinate extents{7, 6, 5, 4};
    for (int mu = 0; mu < lattice::dimensions; ++mu) {
        const position_list face = position_list::of([&](auto&& visit) {
            for (std::int64_t s = 0; s < 7 * 6 * 5 * 4; ++s)
                if (lattice::lexicographic_coordinate(s, extents)[mu] == 2) visit(s);
        });

        EXPECT_EQ(face.size(), 7 * 6 * 5 * 4 / extents[mu]);
        EXPECT_LE(std::ssize(face.runs()), 5 * 4);
    }
}
