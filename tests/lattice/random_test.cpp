// SPDX-License-Identifier: Apache-2.0
#include <halocline/lattice/random.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

using namespace halocline::lattice;
using words = std::array<std::uint32_t, 4>;

TEST(Random, PhiloxGivesThePublishedVectors) {
    // Known answers of philox4x32, 10 rounds, from the authors' distribution (Random123, kat_vectors).
    EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
    EXPECT_EQ(philox({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}), (words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
    EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              (words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, SitesDoNotDependOnTheOrderOfEvaluation) {
    std::vector<double> forward;
    for (std::uint64_t s = 0; s < 100; ++s) forward.push_back(site_random(7, 1, s).normal());

    for (std::uint64_t s = 100; s-- > 0;) EXPECT_EQ(site_random(7, 1, s).normal(), forward[s]);
}

TEST(Random, StreamsWithDifferentKeysDiffer) {
    std::set<double> values;
    for (std::uint64_t seed : {1ULL, 1ULL << 32})
        for (std::uint32_t stream : {0U, 1U})
            for (std::uint64_t site : {0ULL, 1ULL, 1ULL << 32})
                values.insert(site_random(seed, stream, site).uniform());
    EXPECT_EQ(values.size(), 12U);
}

TEST(Random, NormalHasTheMomentsOfANormal) {
    double sum[5] = {};
    constexpr int n = 400000;
    for (std::uint64_t s = 0; s < n / 8; ++s) {
        site_random random(3, 0, s);
        for (int i = 0; i < 8; ++i) {
            const double v = random.normal();
            for (int k = 1; k < 5; ++k) sum[k] += std::pow(v, k);
        }
    }
    // Five standard errors: sqrt(var(v^k) / n).
    EXPECT_NEAR(sum[1] / n, 0, 5 * std::sqrt(1.0 / n));
    EXPECT_NEAR(sum[2] / n, 1, 5 * std::sqrt(2.0 / n));
    EXPECT_NEAR(sum[3] / n, 0, 5 * std::sqrt(15.0 / n));
    EXPECT_NEAR(sum[4] / n, 3, 5 * std::sqrt(96.0 / n));
}

TEST(Random, UniformIsInItsHalfOpenInterval) {
    site_random random(5, 2, 9);
    double sum = 0;
    for (int i = 0; i < 100000; ++i) {
        const double v = random.uniform();
        ASSERT_GE(v, 0);
        ASSERT_LT(v, 1);
        sum += v;
    }
    EXPECT_NEAR(sum / 100000, 0.5, 5 * std::sqrt(1.0 / 12 / 100000));
}
