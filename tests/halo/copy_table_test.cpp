// SPDX-License-Identifier: Apache-2.0
// Copies along lists of sites against plain loops: random lists, sizes, lane widths, ranges; every SIMD target.
#include "simd_targets.hpp"

#include <halocline/base/error.hpp>
#include <halocline/halo/pack_reference.hpp>
#include <halocline/lattice/site_order.hpp>

#include <algorithm>
#include <numeric>
#include <random>

using namespace halocline_test;
using halocline::halo::copy_table;
using halocline::halo::site_places;
namespace halo = halocline::halo;
namespace lattice = halocline::lattice;

namespace {

constexpr std::byte poison{0xa5};

int drawn(std::mt19937& g, int low, int high) { return low + static_cast<int>(g() % static_cast<unsigned>(high - low + 1)); }

/// Different places below `storage`: one run, runs at a stride, or any.
std::vector<std::int32_t> random_places(std::mt19937& g, int sites, int& storage) {
    std::vector<std::int32_t> places;
    const int kind = drawn(g, 0, 3);
    const int run = kind == 0 ? std::max(sites, 1) : drawn(g, 1, 9), gap = drawn(g, 1, 5), start = drawn(g, 0, 7);
    for (int i = 0; i < sites; ++i) places.push_back(start + i / run * (run + gap) + i % run);
    storage = start + (sites / run + 1) * (run + gap);
    if (kind == 2) std::reverse(places.begin(), places.end());
    if (kind == 3) std::shuffle(places.begin(), places.end(), g);
    return places;
}

std::size_t rounded_up(int n, int w) { return static_cast<std::size_t>((n + w - 1) / w * w); }

void compare_random_copies(unsigned seed, int cases) {
    std::mt19937 g(seed);
    for (int k = 0; k < cases; ++k) {
        const std::size_t component_bytes = std::size_t{2} << drawn(g, 0, 2);
        constexpr int components[] = {1, 2, 3, 6, 12, 24, 48, 97};
        const std::size_t site_bytes = static_cast<std::size_t>(components[drawn(g, 0, 7)]) * component_bytes;
        const int sites = drawn(g, 0, 90);
        int storage[2] = {sites, sites}, lanes[2] = {1, 1};
        std::vector<std::int32_t> places[2];
        for (const int side : {0, 1}) {
            if (drawn(g, 0, 2) != 0) lanes[side] = 1 << drawn(g, 0, 4);
            if (drawn(g, 0, 2) != 0) places[side] = random_places(g, sites, storage[side]);
        }
        std::vector<std::byte> source(rounded_up(storage[0], lanes[0]) * site_bytes);
        for (std::byte& b : source) b = static_cast<std::byte>(g());
        std::vector<std::byte> target(rounded_up(storage[1], lanes[1]) * site_bytes + 64, poison), expected = target;
        const int first = drawn(g, 0, sites), last = drawn(g, first, sites);

        const site_places from{places[0], lanes[0]}, to{places[1], lanes[1]};
        const copy_table table(sites, site_bytes, from, to);
        halo::reference::copy(from, to, site_bytes, source.data(), expected.data(), first, last, component_bytes);
        table.copy(source.data(), target.data(), first, last, component_bytes);

        ASSERT_EQ(target, expected) << "case " << k << ": " << sites << " sites of " << site_bytes << " bytes, range [" << first
                                    << ", " << last << "), lanes " << lanes[0] << " to " << lanes[1];
    }
}

} // namespace

TEST(CopyTable, EqualsPlainLoopsAndTouchesNothingElse) {
    on_each_simd_target([] { compare_random_copies(20261121, 3000); });
}

TEST(CopyTable, CopiesEachFaceOfABoxInEveryRangeOfATeam) {
    const lattice::coordinate extents{4, 3, 5, 2};
    const auto order = lattice::site_order::lexicographic(extents);
    constexpr std::size_t site_bytes = 96;
    std::vector<std::byte> source(static_cast<std::size_t>(order->volume()) * site_bytes);
    std::mt19937 g(1);
    for (std::byte& b : source) b = static_cast<std::byte>(g());

    on_each_simd_target([&] {
        for (int mu = 0; mu < lattice::dimensions; ++mu)
            for (int width = 1; width <= 2; ++width) {
                std::vector<std::int32_t> places;
                for (std::int32_t s = 0; s < order->volume(); ++s)
                    if (lattice::lexicographic_coordinate(s, extents)[mu] < width) places.push_back(s);
                const auto sites = std::ssize(places);
                const copy_table pack(sites, site_bytes, {places, 1}, {}), unpack(sites, site_bytes, {}, {places, 1});
                std::vector<std::byte> expected(places.size() * site_bytes);
                halo::reference::copy({places, 1}, {}, site_bytes, source.data(), expected.data(), 0, sites, 8);
                for (std::int64_t members = 1; members <= 5; ++members) {
                    std::vector<std::byte> message(expected.size(), poison), back(source.size(), poison), back_expected = back;
                    for (std::int64_t i = 0; i < members; ++i)
                        pack.copy(source.data(), message.data(), sites * i / members, sites * (i + 1) / members, 8);
                    ASSERT_EQ(message, expected) << "dimension " << mu << ", team of " << members;
                    for (std::int64_t i = 0; i < members; ++i)
                        unpack.copy(message.data(), back.data(), sites * i / members, sites * (i + 1) / members, 8);
                    halo::reference::copy({}, {places, 1}, site_bytes, message.data(), back_expected.data(), 0, sites, 8);
                    ASSERT_EQ(back, back_expected) << "dimension " << mu << ", team of " << members;
                }
            }
    });
}

TEST(CopyTable, RefusesSidesOfDifferentLength) {
    const std::vector<std::int32_t> places{3, 1, 2};
    try {
        const copy_table table(4, 8, {places, 1}, {});
        FAIL() << "made a table of 4 sites with 3 places";
    } catch (const halocline::input_error& e) {
        EXPECT_NE(std::string(e.what()).find("copy of 4 sites: one side lists 3 places"), std::string::npos) << e.what();
    }
}
