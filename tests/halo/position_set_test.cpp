// SPDX-License-Identifier: Apache-2.0
// Sets of storage positions compared with std::set: random lists with repetitions, near and far apart.
#include "position_set.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

using halocline::halo::position_list;
using halocline::halo::position_set;

namespace {

/// Runs of up to 300 neighbours, alone or several short ones at equal distances, some of them far away.
std::vector<std::int64_t> random_list(std::mt19937& g) {
    std::vector<std::int64_t> list;
    for (auto runs = g() % 5; runs > 0; --runs) {
        const std::int64_t first = 200 + static_cast<std::int64_t>(g() % 2000) + (g() % 3 == 0 ? 2'000'000'000 : 0);
        const bool is_alone = g() % 2 == 0;
        const std::int64_t sites = g() % (is_alone ? 300 : 20), count = is_alone ? 1 : g() % 20,
                           stride = static_cast<std::int64_t>(g() % 90) - 10;
        for (std::int64_t i = 0; i < count; ++i)
            for (std::int64_t site = 0; site < sites; ++site) list.push_back(first + i * stride + site);
    }
    return list;
}

} // namespace

TEST(PositionSet, HoldsWhatWasAddedAndFindsWhatIsRepeated) {
    std::mt19937 g(1848);
    int repetitions = 0, meetings = 0;
    for (int k = 0; k < 500; ++k) {
        position_set set;
        std::set<std::int64_t> expected;
        for (int lists = 0; lists < 3; ++lists) {
            const std::vector<std::int64_t> list = random_list(g);
            std::set<std::int64_t> repeated;
            for (const std::int64_t p : list)
                if (!expected.insert(p).second) repeated.insert(p);

            const std::int64_t found = set.add(position_list(list));

            ASSERT_EQ(found >= 0, !repeated.empty());
            ASSERT_TRUE(found < 0 || repeated.contains(found));
            repetitions += found >= 0;
        }
        const std::vector<std::int64_t> other = random_list(g);
        const std::int64_t common = set.common(position_list(other));
        ASSERT_EQ(common >= 0, std::ranges::any_of(other, [&](std::int64_t p) { return expected.contains(p); }));
        ASSERT_TRUE(common < 0 || (expected.contains(common) && std::ranges::count(other, common) > 0));
        meetings += common >= 0;
        for (const std::int64_t p : expected)
            for (const std::int64_t at : {p - 1, p, p + 1}) ASSERT_EQ(set.contains(at), expected.contains(at)) << at;
    }
    EXPECT_GT(repetitions, 100);
    EXPECT_GT(meetings, 100);
}
