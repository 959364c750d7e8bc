// SPDX-License-Identifier: Apache-2.0
// Any block map, not only those of half-spinors, compared with plain loops, on every SIMD target. Whole numbers, so
// that sums are exact.
#include "pack_cases.hpp"

using namespace halocline_test;

namespace {

/// A map of 1 to 6 blocks to 1 to 6 blocks, each a sum of up to 3.
struct random_map {
    int blocks;
    block_map map;

    explicit random_map(std::mt19937& g) : blocks(drawn(g, 1, 6)), map{.block_reals = drawn(g, 1, 9), .rows = {}} {
        const bool is_complex = map.block_reals % 2 == 0;
        map.rows.resize(static_cast<std::size_t>(drawn(g, 1, 6)));
        for (auto& row : map.rows)
            for (int terms = drawn(g, 0, 3); terms > 0; --terms)
                row.push_back(
                    {drawn(g, 0, blocks - 1), {1. * drawn(g, -2, 2), is_complex ? 1. * drawn(g, -2, 2) : 0.}});
    }
    [[nodiscard]] std::size_t in_reals() const { return static_cast<std::size_t>(blocks * map.block_reals); }
    [[nodiscard]] std::size_t out_reals() const { return static_cast<std::size_t>(map.reals()); }
};

template <class T>
void expect_plain_loops(std::mt19937& g) {
    const random_map m(g);
    const auto sites = static_cast<std::size_t>(drawn(g, 1, 5));
    const std::size_t reals = m.in_reals(), made = m.out_reals();
    std::vector<T> in(sites * reals);
    for (T& v : in) v = static_cast<T>(drawn(g, -9, 9));
    std::vector<std::int32_t> backwards, scattered; // scattered: one of the sites + 1 stays unchanged
    const int turn = drawn(g, 0, 5);
    for (std::size_t s = 0; s < sites; ++s) {
        backwards.push_back(static_cast<std::int32_t>(sites - 1 - s));
        scattered.push_back(static_cast<std::int32_t>((s + static_cast<std::size_t>(turn)) % (sites + 1)));
    }
    std::vector<T> expected(sites * made), turned(sites * made), expected_sum((sites + 1) * made, 1);
    for (std::size_t s = 0; s < sites; ++s) {
        const std::vector<double> site(&in[s * reals], &in[s * reals] + reals);
        const std::vector<double> image = reference::mapped(m.map, 1, site);
        for (std::size_t c = 0; c < made; ++c)
            expected[s * made + c] = turned[(sites - 1 - s) * made + c] = static_cast<T>(image[c]);
        reference::add_expanded<T>(m.map, 1, site,
                                   {&expected_sum[static_cast<std::size_t>(scattered[s]) * made], made});
    }
    std::vector<T> out(expected.size(), 1), gathered(expected.size(), 1), sum(expected_sum.size(), 1);

    const halo::site_map<T> fast(m.map, static_cast<int>(reals));
    fast.assign(in.data(), out.data(), std::ssize(backwards));
    fast.gather(in.data(), backwards.data(), gathered.data(), std::ssize(backwards));
    fast.add(in.data(), sum.data(), scattered.data(), std::ssize(scattered));

    ASSERT_EQ(out, expected);
    ASSERT_EQ(gathered, turned);
    ASSERT_EQ(sum, expected_sum);
}

} // namespace

TEST(SiteMap, EqualsPlainLoopsOnEveryTarget) {
    on_each_simd_target([] {
        std::mt19937 g(11);
        for (int n = 0; n < 300; ++n) {
            SCOPED_TRACE(n);
            expect_plain_loops<float>(g);
            expect_plain_loops<double>(g);
        }
    });
}
