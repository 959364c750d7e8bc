// SPDX-License-Identifier: Apache-2.0
// Copies and sums along lists of sites compared with plain loops on every SIMD target: lists that are contiguous,
// strided, reversed or shuffled, random sizes and ranges, 1 to 16 lanes on either side.
#include "pack_reference.hpp"

#include <halocline/comm/detail/claim_lines.hpp>
#include <halocline/halo/detail/site_copy.hpp>
#include <halocline_test/simd_targets.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

using namespace halocline_test;
using halocline::halo::scalar;
using halocline::halo::site_copy;
using halocline::halo::site_shape;
namespace lattice = halocline::lattice;
namespace reference = halocline::halo::reference;

namespace {

constexpr std::byte poison{0xa5};

int drawn(std::mt19937& g, int low, int high) {
    return low + static_cast<int>(g() % static_cast<unsigned>(high - low + 1));
}

std::vector<std::int64_t> counted(std::int64_t sites) {
    std::vector<std::int64_t> positions(static_cast<std::size_t>(sites));
    std::iota(positions.begin(), positions.end(), 0);
    return positions;
}

/// Different positions: one run, runs at a stride, the same backwards, or shuffled.
std::vector<std::int64_t> random_positions(std::mt19937& g, int sites) {
    std::vector<std::int64_t> positions;
    const int kind = drawn(g, 0, 3);
    const int run = kind == 0 ? std::max(sites, 1) : drawn(g, 1, 9), gap = drawn(g, 1, 5), start = drawn(g, 0, 7);
    for (int i = 0; i < sites; ++i) positions.push_back(start + i / run * (run + gap) + i % run);
    if (kind == 2) std::reverse(positions.begin(), positions.end());
    if (kind == 3) std::shuffle(positions.begin(), positions.end(), g);
    return positions;
}

/// Storage that holds these positions, plus one group of lanes.
std::vector<std::byte> storage(const std::vector<std::int64_t>& positions, int lanes, const site_shape& shape) {
    const std::int64_t end = positions.empty() ? 0 : *std::max_element(positions.begin(), positions.end());
    return std::vector<std::byte>(
        static_cast<std::size_t>(end / lanes + 2) * static_cast<std::size_t>(lanes) * shape.bytes(), poison);
}

struct copy_case {
    explicit copy_case(std::mt19937& g) {
        constexpr int components[] = {1, 2, 3, 6, 12, 24, 48, 97};
        const int width = drawn(g, 0, 2), sites = drawn(g, 0, 90);
        shape = {components[drawn(g, 0, 7)], std::size_t{2} << width,
                 width == 1   ? scalar::float32
                 : width == 2 ? scalar::float64
                              : scalar::bits};
        for (const int side : {0, 1}) {
            if (drawn(g, 0, 2) != 0) lanes[side] = 1 << drawn(g, 0, 4);
            positions[side] = drawn(g, 0, 2) != 0 ? random_positions(g, sites) : counted(sites);
        }
        const int begin = drawn(g, 0, sites);
        first = begin, last = drawn(g, begin, sites);
        source = storage(positions[0], lanes[0], shape);
        target = storage(positions[1], lanes[1], shape);
        text = std::to_string(sites) + " sites of " + std::to_string(shape.bytes()) + " bytes, range [" +
               std::to_string(first) + ", " + std::to_string(last) + "), lanes " + std::to_string(lanes[0]) + " to " +
               std::to_string(lanes[1]);
    }
    [[nodiscard]] reference::side side(int i) const { return {positions[i], lanes[i]}; }

    site_shape shape;
    int lanes[2] = {1, 1};
    std::vector<std::int64_t> positions[2];
    std::int64_t first = 0, last = 0;
    std::vector<std::byte> source, target;
    std::string text;
};

template <class T>
void fill_with_numbers(std::vector<std::byte>& storage, std::mt19937& g) {
    for (std::size_t i = 0; i + sizeof(T) <= storage.size(); i += sizeof(T)) {
        const T value = static_cast<T>(static_cast<double>(g()) / 1e5 - 2e4);
        std::memcpy(storage.data() + i, &value, sizeof(T));
    }
}

template <class T>
void expect_sum_equals_reference(copy_case& c, std::mt19937& g) {
    fill_with_numbers<T>(c.source, g);
    fill_with_numbers<T>(c.target, g);
    std::vector<std::byte> expected = c.target;
    reference::add<T>(c.side(0), c.side(1), c.source.data(), expected.data(), c.shape, c.first, c.last);

    site_copy(c.positions[0], c.lanes[0], c.positions[1], c.lanes[1])
        .add(c.source.data(), c.target.data(), c.shape, c.first, c.last);

    ASSERT_EQ(c.target, expected) << c.text;
}

} // namespace

TEST(SiteCopy, EqualsPlainLoopsAndTouchesNothingElse) {
    on_each_simd_target([] {
        std::mt19937 g(20261121);
        for (int k = 0; k < 3000; ++k) {
            copy_case c(g);
            for (std::byte& b : c.source) b = static_cast<std::byte>(g());
            std::vector<std::byte> expected = c.target;
            reference::copy(c.side(0), c.side(1), c.source.data(), expected.data(), c.shape, c.first, c.last);

            const site_copy copy(c.positions[0], c.lanes[0], c.positions[1], c.lanes[1]);
            std::vector<std::byte> streamed = c.target;
            copy.copy(c.source.data(), c.target.data(), c.shape, c.first, c.last);
            if (copy.streams()) copy.stream(c.source.data(), streamed.data(), c.shape, c.first, c.last);

            ASSERT_EQ(c.target, expected) << "case " << k << ": " << c.text;
            if (copy.streams()) {
                ASSERT_EQ(streamed, expected) << "streamed, case " << k << ": " << c.text;
            }
        }
    });
}

TEST(SiteCopy, ClaimsEachLineThatACopyFillsAndNoOtherByte) {
    std::mt19937 g(3);
    int claimed_cases = 0;
    for (int k = 0; k < 3000; ++k) {
        copy_case c(g);
        std::fill(c.source.begin(), c.source.end(), std::byte{1});
        std::vector<std::byte> filled = c.target;
        reference::copy(c.side(0), c.side(1), c.source.data(), filled.data(), c.shape, c.first, c.last);

        site_copy(c.positions[0], c.lanes[0], c.positions[1], c.lanes[1])
            .claim(c.target.data(), c.shape, c.first, c.last);

        std::set<std::uintptr_t> lines, claimed;
        for (std::size_t i = 0; i < filled.size(); ++i) {
            const auto line = reinterpret_cast<std::uintptr_t>(&c.target[i]) / 64;
            if (filled[i] != poison) lines.insert(line);
            if (c.target[i] == poison) continue;
            ASSERT_EQ(filled[i], std::byte{1}) << "case " << k << ": " << c.text;
            claimed.insert(line);
        }
        if (claimed.empty()) continue;
        ++claimed_cases;
        ASSERT_FALSE(halocline::comm::detail::claims_by_prefetch) << "that stores nothing";
        ASSERT_EQ(claimed, lines) << "case " << k << ": " << c.text;
    }
    if (!halocline::comm::detail::claims_by_prefetch) { // otherwise no byte may change
        EXPECT_GT(claimed_cases, 500);
    }
}

TEST(SiteCopy, CountsTheLinesThatAStreamFillsWholeAndInPart) {
    constexpr std::size_t line = 64;
    std::mt19937 g(11);
    int counted_cases = 0;
    for (int k = 0; k < 2000; ++k) {
        copy_case c(g);
        std::sort(c.positions[1].begin(), c.positions[1].end());
        const site_copy copy(c.positions[0], 1, c.positions[1], 1);
        if (!copy.streams()) continue;
        ++counted_cases;
        const std::size_t offset = 2 * g() % (3 * line), site = c.shape.bytes();
        std::map<std::size_t, std::map<int, std::size_t>> bytes; // of each line, by run
        int run = 0;
        for (std::size_t i = 0; i < c.positions[1].size(); ++i) {
            const std::int64_t from = c.positions[0][i], to = c.positions[1][i];
            if (i > 0 && (from != c.positions[0][i - 1] + 1 || to != c.positions[1][i - 1] + 1)) ++run;
            for (std::size_t b = 0; b < site; ++b)
                ++bytes[(offset + static_cast<std::size_t>(to) * site + b) / line][run];
        }
        std::size_t whole = 0;
        for (const auto& [l, of_run] : bytes) whole += of_run.begin()->second == line ? 1 : 0;

        const halocline::comm::written_lines lines = copy.lines(offset, c.shape);

        ASSERT_EQ(lines.whole, whole) << "case " << k << ": " << c.text;
        ASSERT_EQ(lines.whole + lines.part, bytes.size()) << "case " << k << ": " << c.text;
    }
    EXPECT_GT(counted_cases, 500);
}

TEST(SiteCopy, AddsInTheOrderOfTheList) {
    on_each_simd_target([] {
        std::mt19937 g(7);
        for (int k = 0; k < 2000; ++k) {
            copy_case c(g);
            if (c.shape.kind == scalar::float32) expect_sum_equals_reference<float>(c, g);
            if (c.shape.kind == scalar::float64) expect_sum_equals_reference<double>(c, g);
            if (testing::Test::HasFatalFailure()) return;
        }
    });
}

TEST(SiteCopy, CopiesEachFaceOfABoxInTheRangesOfATeam) {
    const lattice::coordinate extents{4, 3, 5, 2};
    const auto order = lattice::site_order::lexicographic(extents);
    const site_shape shape{24, 4, scalar::float32};
    std::vector<std::byte> source(static_cast<std::size_t>(order->volume()) * shape.bytes());
    std::mt19937 g(1);
    for (std::byte& b : source) b = static_cast<std::byte>(g());

    on_each_simd_target([&] {
        for (int mu = 0; mu < lattice::dimensions; ++mu)
            for (int width = 1; width <= 2; ++width) {
                std::vector<std::int64_t> face;
                for (std::int64_t s = 0; s < order->volume(); ++s)
                    if (lattice::lexicographic_coordinate(s, extents)[mu] < width) face.push_back(s);
                const std::int64_t sites = std::ssize(face);
                const std::vector<std::int64_t> count = counted(sites);
                const site_copy pack(face, 1, count, 1), unpack(count, 1, face, 1);
                std::vector<std::byte> expected(face.size() * shape.bytes());
                reference::copy({face, 1}, {count, 1}, source.data(), expected.data(), shape, 0, sites);
                for (std::int64_t members = 1; members <= 5; ++members) {
                    std::vector<std::byte> message(expected.size(), poison), back(source.size(), poison),
                        back_expected = back;
                    for (std::int64_t i = 0; i < members; ++i)
                        pack.copy(source.data(), message.data(), shape, sites * i / members, sites * (i + 1) / members);
                    ASSERT_EQ(message, expected) << "dimension " << mu << ", team of " << members;
                    for (std::int64_t i = 0; i < members; ++i)
                        unpack.copy(message.data(), back.data(), shape, sites * i / members, sites * (i + 1) / members);
                    reference::copy({count, 1}, {face, 1}, message.data(), back_expected.data(), shape, 0, sites);
                    ASSERT_EQ(back, back_expected) << "dimension " << mu << ", team of " << members;
                }
            }
    });
}

// Outer indices whose lanes are all in the list, in any order, and some that are not: transposed in fours, or copied
// word by word.
TEST(SiteCopy, TakesWholeGroupsOfLanes) {
    on_each_simd_target([] {
        std::mt19937 g(11);
        for (int k = 0; k < 600; ++k) {
            const int lanes = 4 << drawn(g, 0, 2), outers = drawn(g, 1, 9);
            const site_shape shape{drawn(g, 1, 30), std::size_t{2} << drawn(g, 0, 2), scalar::bits};
            std::vector<std::int64_t> places;
            for (std::int64_t p = 0; p < outers * lanes; ++p)
                if (drawn(g, 0, 30) != 0) places.push_back(p);
            if (k % 2 == 1) std::shuffle(places.begin(), places.end(), g);
            const std::vector<std::int64_t> one_by_one =
                k % 3 == 0 ? random_positions(g, static_cast<int>(places.size())) : counted(std::ssize(places));
            for (const bool packs : {true, false}) {
                const std::vector<std::int64_t>&from = packs ? places : one_by_one, &to = packs ? one_by_one : places;
                const int from_lanes = packs ? lanes : 1, to_lanes = packs ? 1 : lanes;
                std::vector<std::byte> source = storage(from, from_lanes, shape), target = storage(to, to_lanes, shape);
                for (std::byte& b : source) b = static_cast<std::byte>(g());
                std::vector<std::byte> expected = target;
                const std::int64_t first = drawn(g, 0, 3) == 0 ? drawn(g, 0, static_cast<int>(from.size())) : 0;
                const std::int64_t last = drawn(g, 0, 3) == 0
                                              ? drawn(g, static_cast<int>(first), static_cast<int>(from.size()))
                                              : std::ssize(from);
                reference::copy({from, from_lanes}, {to, to_lanes}, source.data(), expected.data(), shape, first, last);
                site_copy(from, from_lanes, to, to_lanes).copy(source.data(), target.data(), shape, first, last);
                ASSERT_EQ(target, expected) << "case " << k << ", " << shape.bytes() << " bytes, lanes " << lanes;
            }
        }
    });
}

// Streamed messages, claimed ones and pieces that a receiver copies are copied by blocks of a few sites.
TEST(SiteCopy, VisitsEachSiteAtMostTwiceInHoweverManyParts) {
    on_each_simd_target([] {
        std::mt19937 g(7);
        constexpr int lanes = 8, sites = 1024;
        const site_shape shape{6, 4, scalar::bits};
        // Lane by lane, as the sub-boxes of a blocked order follow each other: each group spans the whole list.
        std::vector<std::int64_t> places;
        for (int i = 0; i < sites; ++i) places.push_back(i % (sites / lanes) * lanes + i / (sites / lanes));
        const std::vector<std::int64_t> message = counted(sites);
        for (const bool packs : {true, false}) {
            const std::vector<std::int64_t>&from = packs ? places : message, &to = packs ? message : places;
            const int from_lanes = packs ? lanes : 1, to_lanes = packs ? 1 : lanes;
            std::vector<std::byte> source = storage(from, from_lanes, shape), expected = storage(to, to_lanes, shape);
            for (std::byte& b : source) b = static_cast<std::byte>(g());
            const site_copy copies(from, from_lanes, to, to_lanes);
            copies.copy(source.data(), expected.data(), shape);
            EXPECT_EQ(copies.visits(0, sites), sites);
            for (const int part : {1, 7, 32, 300, 512, 600}) {
                std::vector<std::byte> target = storage(to, to_lanes, shape);
                std::int64_t visits = 0;
                for (std::int64_t first = 0; first < sites; first += part) {
                    const std::int64_t last = std::min<std::int64_t>(first + part, sites);
                    copies.copy(source.data(), target.data(), shape, first, last);
                    visits += copies.visits(first, last);
                }
                EXPECT_LE(visits, 2 * sites) << "parts of " << part;
                EXPECT_EQ(target, expected) << "parts of " << part;
            }
        }
    });
}

TEST(SiteCopy, FaceOfABoxIsOneRunPerRow) {
    const lattice::coordinate extents{4, 3, 5, 2};
    std::vector<std::int64_t> y_face;
    for (std::int64_t s = 0; s < 4 * 3 * 5 * 2; ++s)
        if (lattice::lexicographic_coordinate(s, extents)[1] == 0) y_face.push_back(s);

    EXPECT_EQ(site_copy(y_face, 1, counted(std::ssize(y_face)), 1).runs(), 5 * 2);
}
