// SPDX-License-Identifier: Apache-2.0
#include <halocline/base/error.hpp>
#include <halocline/lattice/field.hpp>
#include <halocline/lattice/site_order.hpp>
#include <halocline_test/allocation_counter.hpp>
#include <halocline_test/refusal.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

using namespace halocline::lattice;
using halocline_test::allocated_bytes;
using halocline_test::refusal;

namespace {

struct blocked_case {
    coordinate global, block;
    box local;
};
const std::vector<blocked_case> blocked_cases{{{8, 8, 8, 8}, {4, 4, 4, 4}, {{0, 0, 0, 0}, {8, 8, 8, 8}}},
                                              {{8, 8, 8, 8}, {4, 4, 4, 4}, {{0, 0, 0, 4}, {8, 8, 8, 4}}},
                                              {{8, 8, 8, 8}, {2, 2, 2, 2}, {{0, 0, 0, 4}, {8, 8, 8, 2}}},
                                              {{4, 4, 4, 4}, {2, 2, 2, 2}, {{2, 0, 2, 0}, {2, 4, 2, 4}}},
                                              {{6, 6, 10, 4}, {3, 3, 5, 2}, {{3, 0, 5, 2}, {3, 6, 5, 2}}},
                                              {{7, 5, 3, 4}, {7, 5, 3, 2}, {{0, 0, 0, 0}, {7, 5, 3, 4}}},
                                              {{4, 4, 4, 8}, {4, 4, 4, 4}, {{0, 0, 0, 0}, {4, 4, 4, 8}}},
                                              {{12, 4, 4, 8}, {4, 2, 2, 8}, {{4, 0, 0, 0}, {4, 4, 4, 8}}}};

void expect_bijection(const site_order& order) {
    std::int64_t found = 0;
    for (std::int64_t p = 0; p < order.outer_sites() * order.lane_width(); ++p) {
        if (order.site(p) < 0) continue;
        ASSERT_EQ(order.position(order.site(p)), p);
        ++found;
    }
    EXPECT_EQ(found, order.volume());
    EXPECT_EQ(found, volume(order.extents()));
}

} // namespace

TEST(SiteOrder, LexicographicIsTheIdentity) {
    const auto order = site_order::lexicographic({2, 3, 4, 5});
    for (std::int64_t s = 0; s < order->volume(); ++s) EXPECT_EQ(order->position(s), s);
    EXPECT_TRUE(order->is_lexicographic());
    EXPECT_TRUE(order->is_like(*site_order::lexicographic({2, 3, 4, 5})));
    EXPECT_FALSE(order->is_like(*site_order::lexicographic({2, 3, 5, 4})));
    EXPECT_FALSE(order->is_like(*site_order::even_odd({{0, 0, 0, 0}, {2, 3, 4, 5}})));
    EXPECT_FALSE(site_order::even_odd({{0, 0, 0, 0}, {2, 3, 4, 5}})->is_lexicographic());
    expect_bijection(*order);
    EXPECT_TRUE(order->followed_by(7)->is_like(*site_order::lexicographic({127, 1, 1, 1})));
    const std::size_t before = allocated_bytes();
    (void)site_order::lexicographic({64, 64, 64, 64});
    EXPECT_LE(allocated_bytes() - before, 4096U);
}

TEST(SiteOrder, PlacesSitesAsAnotherDoes) {
    const auto two = site_order::lexicographic({2, 1, 1, 1});
    EXPECT_TRUE(two->places_as(*site_order::even_odd({{0, 0, 0, 0}, {2, 1, 1, 1}})));
    EXPECT_TRUE(site_order::even_odd({{0, 0, 0, 0}, {2, 1, 1, 1}})->places_as(*two));
    EXPECT_FALSE(two->places_as(*site_order::even_odd({{1, 0, 0, 0}, {2, 1, 1, 1}})));
    EXPECT_FALSE(two->places_as(*site_order::lexicographic({1, 2, 1, 1})));
}

TEST(Field, NeedsASiteOrder) {
    try {
        const field<double> x(nullptr, 1);
        FAIL() << "a field without an order was made";
    } catch (const halocline::input_error& e) {
        EXPECT_STREQ(e.what(), "a field was made without a site order");
    }
}

TEST(SiteOrder, EvenOddUsesGlobalParity) {
    const box local{{1, 0, 2, 0}, {3, 3, 1, 5}};
    const auto order = site_order::even_odd(local);

    expect_bijection(*order);
    int last = 0;
    std::int64_t last_site = -1;
    for (std::int64_t p = 0; p < order->volume(); ++p) {
        const coordinate x = local.site(order->site(p));
        if (parity(x) != last) last_site = -1;
        EXPECT_GE(parity(x), last);
        EXPECT_GT(order->site(p), last_site);
        last = parity(x);
        last_site = order->site(p);
    }
    EXPECT_EQ(last, 1);
}

TEST(SiteOrder, HalfHoldsTheSitesOfOneParityInOrder) {
    const box local{{1, 0, 2, 0}, {3, 5, 2, 1}};
    std::int64_t stored = 0;
    for (const int p : {0, 1}) {
        const auto order = site_order::half(local, p);
        EXPECT_FALSE(order->is_whole());
        EXPECT_EQ(order->volume(), local.volume());
        for (std::int64_t s = 0, next = 0; s < order->volume(); ++s) {
            const bool has_place = parity(local.site(s)) == p;
            ASSERT_EQ(order->position(s), has_place ? next : -1);
            if (has_place) {
                ASSERT_EQ(order->site(next++), s);
            }
        }
        stored += order->outer_sites();

        const auto more = order->followed_by(4);
        EXPECT_EQ(more->outer_sites(), order->outer_sites() + 4);
        EXPECT_EQ(more->position(local.volume()), order->outer_sites());
        EXPECT_FALSE(more->is_whole());
    }
    EXPECT_EQ(stored, local.volume());
    EXPECT_TRUE(site_order::even_odd(local)->is_whole());
    EXPECT_EQ(refusal([&] { site_order::half(local, 2); }), "sites of parity 2: must be 0 (even) or 1 (odd)");
}

TEST(SiteOrder, BlockedIsABijectionForEveryWidth) {
    for (const auto& c : blocked_cases)
        for (int w : {1, 2, 4, 8, 16}) {
            SCOPED_TRACE(to_string(c.global) + " blocks " + to_string(c.block) + " W " + std::to_string(w));
            expect_bijection(*site_order::blocked(c.local, c.global, c.block, w));
        }
}

TEST(SiteOrder, LanesOfOneOuterIndexShareColourAndBlockParity) {
    for (const auto& c : blocked_cases)
        for (int w : {1, 2, 4, 8, 16}) {
            const auto order = site_order::blocked(c.local, c.global, c.block, w);
            const block_layout& b = *order->blocks();
            for (std::int64_t o = 0; o < order->outer_sites(); ++o) {
                const std::int64_t group = o / b.sites_per_group;
                const int colour = group < b.groups[0] ? 0 : 1;
                const int expected_parity = o % b.sites_per_group < b.even_sites ? 0 : 1;
                for (int lane = 0; lane < w; ++lane) {
                    const std::int64_t site = order->site(o * w + lane);
                    if (site < 0) continue;
                    coordinate in_block{}, block_at{};
                    const coordinate x = lexicographic_coordinate(site, c.local.extents);
                    for (int mu = 0; mu < dimensions; ++mu) {
                        in_block[mu] = x[mu] % c.block[mu];
                        block_at[mu] = (c.local.origin[mu] + x[mu]) / c.block[mu];
                    }
                    ASSERT_EQ(parity(in_block), expected_parity);
                    ASSERT_EQ(b.two_colours ? parity(block_at) : 0, colour);
                }
            }
        }
}

TEST(SiteOrder, SteppingOverASplitPlaneFlipsOneLaneBit) {
    bool any = false;
    for (const auto& c : blocked_cases)
        for (int w : {2, 4, 8, 16}) {
            const auto order = site_order::blocked(c.local, c.global, c.block, w);
            const block_layout& b = *order->blocks();
            int bit = 0;
            for (int mu = 0; mu < dimensions; ++mu) {
                if (!b.split[mu]) continue;
                for (std::int64_t s = 0; s < order->volume(); ++s) {
                    coordinate x = lexicographic_coordinate(s, c.local.extents);
                    if (x[mu] % c.block[mu] >= b.sub[mu]) continue;
                    x[mu] += b.sub[mu]; // the same place in the other half
                    const std::int64_t there = order->position(lexicographic_index(x, c.local.extents));
                    ASSERT_EQ(there, order->position(s) ^ (1 << bit));
                    any = true;
                }
                ++bit;
            }
            EXPECT_EQ(1 << bit, b.splits_per_block);
        }
    EXPECT_TRUE(any);
}

TEST(SiteOrder, SplitsAsLittleAsFillsTheLanes) {
    const auto layout = [](const box& local, int w) {
        return *site_order::blocked(local, {8, 8, 8, 8}, {4, 4, 4, 4}, w)->blocks();
    };
    const box whole{{0, 0, 0, 0}, {8, 8, 8, 8}}, half{{0, 0, 0, 0}, {8, 8, 8, 4}};

    EXPECT_EQ(layout(whole, 8).splits_per_block, 1);
    EXPECT_EQ(layout(half, 8).splits_per_block, 2);
    EXPECT_EQ(layout(half, 8).sub, (coordinate{4, 4, 4, 2})); // t first
    EXPECT_EQ(layout(half, 16).splits_per_block, 4);
    EXPECT_EQ(layout(half, 16).sub, (coordinate{4, 4, 2, 2}));
}

TEST(SiteOrder, PadsWhereSplittingCannotHelp) {
    const auto order = site_order::blocked({{0, 0, 0, 0}, {4, 4, 4, 4}}, {4, 4, 4, 4}, {2, 2, 2, 2}, 16);
    const block_layout& b = *order->blocks();

    EXPECT_EQ(b.splits_per_block, 1); // 2 sites can't be halved into even halves
    EXPECT_EQ(b.groups[0] + b.groups[1], 2);
    EXPECT_EQ(order->outer_sites() * 16, 2 * order->volume());
    EXPECT_EQ(std::count(b.block_of.begin(), b.block_of.end(), -1), 16);
}

TEST(SiteOrder, OddNumbersOfBlocksHaveOneColour) {
    const auto order = site_order::blocked({{0, 0, 0, 0}, {4, 4, 4, 4}}, {4, 4, 4, 12}, {2, 2, 2, 4}, 4);

    EXPECT_FALSE(order->blocks()->two_colours);
    EXPECT_EQ(order->blocks()->groups[1], 0);
}

TEST(SiteOrder, RefusesBlocksThatDoNotFit) {
    const box local{{0, 0, 0, 2}, {4, 4, 4, 4}};
    const auto refused = [&](const coordinate& global, const coordinate& block, int lane_width) {
        return refusal([&] { site_order::blocked(local, global, block, lane_width); });
    };
    EXPECT_EQ(
        refused({4, 4, 4, 8}, {4, 4, 4, 4}, 4), // the origin
        "blocks of 4.4.4.4 do not fit the local box 4.4.4.4 at 0.0.0.2 of the lattice 4.4.4.8: every cut in t must "
        "be a multiple of 4");
    EXPECT_EQ(
        refused({4, 4, 4, 8}, {3, 4, 4, 2}, 4), // an extent of the box
        "blocks of 3.4.4.2 do not fit the local box 4.4.4.4 at 0.0.0.2 of the lattice 4.4.4.8: every cut in x must "
        "be a multiple of 3");
    EXPECT_EQ(
        refused({4, 4, 4, 9}, {4, 4, 4, 2}, 4), // an extent of the lattice
        "blocks of 4.4.4.2 do not fit the local box 4.4.4.4 at 0.0.0.2 of the lattice 4.4.4.9: every cut in t must "
        "be a multiple of 2");
    EXPECT_EQ(refused({4, 4, 4, 8}, {4, 4, 4, 2}, 3), "lane width is 3: it must be 1, 2, 4, 8 or 16");
}

TEST(SiteOrder, RefusesMoreSitesThanPositions) {
    constexpr int many = 1 << 16;
    // 2^64 sites are 0 modulo 2^64, 2^63 a negative number.
    for (const coordinate& extents : {coordinate{many, many, many, many}, coordinate{many, many, many, many / 2},
                                      coordinate{many, many, 1, 1}, coordinate{2, 2, 2, 0}}) {
        const std::string text = "local box " + to_string(extents) +
                                 (extents[3] < 1 ? ": every extent must be at least 1"
                                                 : " has more than 2147483647 sites: cut the lattice over more ranks");
        EXPECT_EQ(refusal([&] { site_order::lexicographic(extents); }), text);
        EXPECT_EQ(refusal([&] { site_order::even_odd({{}, extents}); }), text);
        EXPECT_EQ(refusal([&] { site_order::blocked({{}, extents}, extents, {1, 1, 1, 1}, 4); }), text);
    }
}

TEST(SiteOrder, MoreSitesFollowInWholeOuterIndices) {
    const auto own = site_order::blocked({{0, 0, 0, 0}, {6, 2, 2, 2}}, {6, 2, 2, 2}, {2, 2, 2, 2}, 4);
    const auto order = own->followed_by(7);

    EXPECT_EQ(order->extents(), (coordinate{48 + 7, 1, 1, 1}));
    EXPECT_EQ(order->lane_width(), 4);
    EXPECT_EQ(order->outer_sites(), own->outer_sites() + 2);
    expect_bijection(*order);
    for (std::int64_t s = 0; s < own->volume(); ++s) ASSERT_EQ(order->position(s), own->position(s));
    for (int i = 0; i < 7; ++i) ASSERT_EQ(order->position(48 + i), 4 * own->outer_sites() + i);
    EXPECT_EQ(refusal([&] { (void)own->followed_by(-1); }), "a site order followed by -1 sites: must be 0 or more");
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    EXPECT_EQ(refusal([&] { (void)own->followed_by(most); }),
              "local box 6.2.2.2 takes " + std::to_string(most) +
                  " places, padding and ghosts included; a rank has at most 2147483647");
}

TEST(Field, RefusesNumbersThatNoMemoryHolds) {
    const auto order = site_order::lexicographic({4, 4, 4, 4});
    EXPECT_THROW(field<double>(order, -1), halocline::input_error);
    EXPECT_EQ(field<double>(order, 0).values().size(), 0u);
}

TEST(Field, OfExtentsIsLexicographic) {
    const coordinate extents{2, 3, 4, 5};
    std::pmr::monotonic_buffer_resource memory;

    const field<float> x(extents, 3, &memory), y(extents, 3);

    for (const field<float>* f : {&x, &y}) {
        EXPECT_TRUE(f->order().is_lexicographic());
        EXPECT_EQ(f->order().extents(), extents);
        EXPECT_EQ(f->components(), 3);
        EXPECT_EQ(std::ssize(f->values()), 3 * volume(extents));
    }
}

TEST(Field, StoresComponentsPerLaneAndZeroFills) {
    const auto order = site_order::blocked({{0, 0, 0, 0}, {4, 4, 4, 4}}, {4, 4, 4, 4}, {2, 2, 2, 2}, 4);
    field<float> f(order, 3);
    for (float v : f.values()) ASSERT_EQ(v, 0.0F);

    for (std::int64_t s = 0; s < f.volume(); ++s)
        for (int c = 0; c < 3; ++c) f.at(s, c) = static_cast<float>(3 * s + c + 1);

    for (std::int64_t s = 0; s < f.volume(); ++s) {
        const std::int64_t p = order->position(s);
        for (int c = 0; c < 3; ++c) ASSERT_EQ(f.outer(p / 4)[c * 4 + p % 4], static_cast<float>(3 * s + c + 1));
    }
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(f.data()) % field_alignment, 0U);
}
