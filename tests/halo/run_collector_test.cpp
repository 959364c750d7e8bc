// SPDX-License-Identifier: Apache-2.0
// Many runs at once: collected, they make the same list as one by one; they fill as many lines.
#include "region_transfers.hpp"
#include "run_collector.hpp"
#include "run_walk.hpp"

#include <gtest/gtest.h>

#include <random>

using namespace halocline;
using halo::position_list;
using halo::position_run;
using halo::run_collector;

namespace {

constexpr unsigned seed = 16180339;

int drawn(std::mt19937& g, int low, int high) {
    return low + static_cast<int>(g() % static_cast<unsigned>(high - low + 1));
}

/// Often continues the entry before it, or has its length or distance.
position_run random_run(std::mt19937& g, const position_run& before) {
    position_run r{drawn(g, 0, 50), drawn(g, -2, 6), drawn(g, 1, 3), drawn(g, 1, 6)};
    if (drawn(g, 0, 1) == 0) r.sites = before.sites;
    if (drawn(g, 0, 1) == 0) r.stride = before.stride;
    const std::int64_t last = before.first + (before.count - 1) * before.stride;
    const int kind = drawn(g, 0, 3);
    if (kind == 0) r.first = last + before.stride;
    if (kind == 1) r.first = last + before.sites;
    return r;
}

/// A box inside an array of these extents, cut in several ways: whole, thin, with steps, backwards, repeated.
halo::strided_box random_box(std::mt19937& g, const lattice::coordinate& array) {
    lattice::box part;
    lattice::coordinate every{};
    for (int mu = 0; mu < lattice::dimensions; ++mu) {
        part.extents[mu] = drawn(g, 0, 1) == 0 ? array[mu] : drawn(g, drawn(g, 0, 9) == 0 ? 0 : 1, array[mu]);
        part.origin[mu] = drawn(g, 0, array[mu] - part.extents[mu]);
        every[mu] = drawn(g, 0, 3) == 0 ? 2 : 1;
    }
    halo::strided_box box = halo::box_in(part, array, every);
    if (drawn(g, 0, 3) == 0) {
        std::swap(box.extents[1], box.extents[2]);
        std::swap(box.strides[1], box.strides[2]);
    }
    for (int mu = 0; mu < lattice::dimensions; ++mu) {
        const int kind = drawn(g, 0, 9);
        if (kind == 0) box.strides[mu] = 0;
        if (kind > 1 || box.extents[mu] == 0) continue;
        box.first += (box.extents[mu] - 1) * box.strides[mu];
        box.strides[mu] = -box.strides[mu];
    }
    return box;
}

position_list positions(const halo::transfer& t, const lattice::site_order& order) {
    return halo::positions({t}, {{t.tag, 0}}, order);
}

} // namespace

TEST(RunCollector, TakesAnEntryAtOnceAsItTakesItsPositions) {
    std::mt19937 g(seed);
    for (int k = 0; k < 20000; ++k) {
        run_collector at_once;
        std::vector<std::int64_t> one_by_one;
        position_run r{drawn(g, 0, 50), 0, 1, 1};
        for (int runs = drawn(g, 0, 6); runs > 0; --runs) {
            r = random_run(g, r);
            at_once.add(r);
            for (std::int32_t i = 0; i < r.count; ++i)
                for (std::int32_t s = 0; s < r.sites; ++s) one_by_one.push_back(r.first + i * r.stride + s);
        }

        const position_list list(at_once.take());

        ASSERT_EQ(list.expanded(), one_by_one) << "case " << k;
        ASSERT_EQ(list, position_list(one_by_one)) << "case " << k;
    }
}

TEST(RunCollector, BoxesTakeTheEntriesOfTheirSites) {
    std::mt19937 g(seed + 1);
    const lattice::coordinate array{5, 4, 3, 6};
    const auto order = lattice::site_order::lexicographic(array);
    for (int k = 0; k < 5000; ++k) {
        halo::transfer boxes, sites;
        for (int n = drawn(g, 0, 3); n > 0; --n) boxes.boxes.push_back(random_box(g, array));
        halo::append_sites(boxes, sites.sites);

        const position_list of_boxes = positions(boxes, *order);

        ASSERT_EQ(of_boxes, positions(sites, *order)) << "case " << k;
        ASSERT_EQ(of_boxes.size(), std::ssize(sites.sites));
    }
}

TEST(RunCollector, AFaceOfABoxTakesAnEntryPerPlaneAtMost) {
    const lattice::coordinate array{18, 18, 18, 18};
    const auto order = lattice::site_order::lexicographic(array);
    for (int mu = 0; mu < lattice::dimensions; ++mu) {
        lattice::box face{{1, 1, 1, 1}, {16, 16, 16, 16}};
        face.extents[mu] = 1;
        halo::transfer t;
        t.boxes.push_back(halo::box_in(face, array));

        EXPECT_EQ(std::ssize(positions(t, *order).runs()), mu == 0 ? 16 * 16 : 16);
    }
}

TEST(RunWalk, ManyRunsFillAsManyLinesAtOnceAsOneByOne) {
    std::mt19937 g(seed + 2);
    for (int k = 0; k < 5000; ++k) {
        const std::int64_t begin = 8192 + drawn(g, 0, 200), bytes = drawn(g, 1, 300), step = drawn(g, -100, 500);
        const int count = drawn(g, 0, 80);
        comm::written_lines one_by_one, at_once;
        for (int i = 0; i < count; ++i) halo::add_lines(one_by_one, begin + i * step, begin + i * step + bytes);

        halo::add_lines(at_once, begin, begin + bytes, step, count);

        ASSERT_EQ(at_once.whole, one_by_one.whole) << "case " << k;
        ASSERT_EQ(at_once.part, one_by_one.part) << "case " << k;
    }
}
