// SPDX-License-Identifier: Apache-2.0
#include "norms.hpp"

#include <halocline/amg/aggregation.hpp>
#include <halocline/amg/options.hpp>
#include <halocline/base/error.hpp>
#include <halocline_test/global_fields.hpp>
#include <halocline_test/refusal.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>

namespace {

using namespace halocline;
using amg::aggregation;
using lattice::coordinate;

struct aggregates {
    aggregates(const coordinate& extents, const coordinate& block, int lane_width, int vectors)
        : local{{0, 0, 0, 0}, extents}, fine(lattice::site_order::blocked(local, extents, block, lane_width)),
          p(fine, lattice::site_order::even_odd({{0, 0, 0, 0}, fine->blocks()->grid}), vectors) {
        for (int i = 0; i < vectors; ++i) {
            v.emplace_back(fine, lattice::spinor_components);
            halocline_test::fill_random(v.back(), local, extents, static_cast<std::uint32_t>(i));
        }
    }
    [[nodiscard]] lattice::field<float> fine_field(std::uint32_t stream) const {
        lattice::field<float> f(fine, lattice::spinor_components);
        halocline_test::fill_random(f, local, local.extents, stream);
        return f;
    }
    [[nodiscard]] lattice::field<float> coarse_field(std::uint32_t stream) const {
        lattice::field<float> f(p.coarse(), p.coarse_components());
        halocline_test::fill_random(f, {{0, 0, 0, 0}, fine->blocks()->grid}, fine->blocks()->grid, stream);
        return f;
    }
    lattice::box local;
    std::shared_ptr<const lattice::site_order> fine;
    aggregation p;
    std::vector<lattice::field<float>> v;
};

double dot(const lattice::field<float>& a, const lattice::field<float>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.values().size(); ++i)
        sum += static_cast<double>(a.values()[i]) * static_cast<double>(b.values()[i]);
    return sum;
}

class Aggregation : public testing::TestWithParam<std::tuple<int, coordinate>> {
  protected:
    [[nodiscard]] aggregates make(int vectors) const {
        return {{8, 4, 4, 8}, std::get<1>(GetParam()), std::get<0>(GetParam()), vectors};
    }
};

TEST_P(Aggregation, ColumnsAreOrthonormal) {
    aggregates a = make(12);

    a.p.define(a.v);

    EXPECT_LT(a.p.orthonormality_error(), 2e-6);
}

TEST_P(Aggregation, RestrictIsTheAdjointOfProlong) {
    aggregates a = make(12);
    a.p.define(a.v);
    const lattice::field<float> x = a.coarse_field(1), y = a.fine_field(2);
    lattice::field<float> px = a.fine_field(3), rest = a.coarse_field(4);

    a.p.prolong(px, x);
    a.p.restrict(rest, y);

    EXPECT_NEAR(dot(px, y), dot(x, rest), 1e-5 * halocline_test::norm(x) * halocline_test::norm(y));
    EXPECT_GT(std::abs(dot(px, y)), 1e-3);
}

TEST_P(Aggregation, TestVectorsAreInTheRange) {
    aggregates a = make(12);
    a.p.define(a.v);
    lattice::field<float> xc = a.coarse_field(1), again = a.fine_field(2);

    for (const lattice::field<float>& v : a.v) {
        a.p.restrict(xc, v);
        a.p.prolong(again, xc); // P P^dagger v = v

        EXPECT_LT(halocline_test::distance(again, v), 2e-6);
    }
}

TEST_P(Aggregation, RestrictFromFacesEqualsRestrict) {
    aggregates a = make(6);
    a.p.define(a.v);
    const lattice::block_layout& b = *a.fine->blocks();
    for (const unsigned mask : {0x01U, 0x80U, 0x0cU}) {
        std::vector<lattice::field<float>> y, whole, faces;
        for (std::uint32_t i = 0; i < 3; ++i) {
            y.push_back(a.fine_field(10 + i));
            whole.push_back(a.coarse_field(1));
            faces.push_back(a.coarse_field(2));
            for (std::int64_t site = 0; site < y.back().volume(); ++site) {
                const coordinate x = lattice::lexicographic_coordinate(site, a.local.extents);
                unsigned touched = 0;
                for (int mu = 0; mu < lattice::dimensions; ++mu) {
                    if (x[mu] % b.block[mu] == 0) touched |= 1U << (2 * mu);
                    if (x[mu] % b.block[mu] == b.block[mu] - 1) touched |= 2U << (2 * mu);
                }
                for (int c = 0; !(touched & mask) && c < lattice::spinor_components; ++c) y.back().at(site, c) = 0;
            }
        }

        const std::array<aggregation::batch, 2> batches{{{whole, y, 0}, {faces, y, mask}}};
        a.p.restrict(batches);

        for (std::size_t i = 0; i < y.size(); ++i)
            EXPECT_LT(halocline_test::distance(faces[i], whole[i]), 1e-6) << mask;
    }
}

TEST_P(Aggregation, VectorThatDependsIsReplacedInItsBlockAlone) {
    aggregates dependent = make(6), independent = make(6);
    const lattice::field<float> random = dependent.fine_field(20);
    const coordinate block = std::get<1>(GetParam());
    for (std::int64_t site = 0; site < random.volume(); ++site) {
        const coordinate x = lattice::lexicographic_coordinate(site, dependent.local.extents);
        bool in_first_block = true;
        for (int mu = 0; mu < lattice::dimensions; ++mu) in_first_block &= x[mu] < block[mu];
        for (int c = 0; in_first_block && c < lattice::spinor_components; ++c) {
            dependent.v[4].at(site, c) = 2 * dependent.v[1].at(site, c) - dependent.v[3].at(site, c);
            independent.v[4].at(site, c) = random.at(site, c);
        }
    }

    const std::int64_t replaced =
        dependent.p.define(dependent.v, [&](std::int64_t site, int vector, std::span<float> spinor) {
            EXPECT_EQ(vector, 4);
            for (int c = 0; c < lattice::spinor_components; ++c)
                spinor[static_cast<std::size_t>(c)] = random.at(site, c);
        });

    EXPECT_EQ(replaced, 2); // one per chirality
    EXPECT_EQ(independent.p.define(independent.v), 0);
    EXPECT_LT(dependent.p.orthonormality_error(), 2e-6);
    lattice::field<float> column = dependent.fine_field(1), expected = dependent.fine_field(2);
    for (int chirality = 0; chirality < 2; ++chirality)
        for (int i = 0; i < 6; ++i) {
            dependent.p.column(column, i, chirality);
            independent.p.column(expected, i, chirality);
            EXPECT_EQ(halocline_test::distance(column, expected), 0) << i;
        }
}

INSTANTIATE_TEST_SUITE_P(LanesAndBlocks, Aggregation,
                         testing::Combine(testing::Values(1, 4, 8, 16),
                                          testing::Values(coordinate{4, 4, 4, 4}, coordinate{2, 2, 2, 2},
                                                          coordinate{8, 2, 4, 4})));

TEST(AggregationErrors, TooManyVectorsForABlockAreRefused) {
    try {
        aggregates({4, 4, 4, 4}, {1, 1, 1, 2}, 1, 13);
        FAIL() << "13 vectors in a block of 12 components";
    } catch (const input_error& e) {
        EXPECT_NE(std::string(e.what()).find("13"), std::string::npos);
        EXPECT_NE(std::string(e.what()).find("12 components"), std::string::npos);
    }
}

TEST(AggregationErrors, DependentVectorIsNamedWithItsBlock) {
    aggregates a({8, 4, 4, 4}, {4, 4, 4, 4}, 4, 6);
    // vector 4 equals vector 1 in the block at x = 4, and only there
    for (std::int64_t site = 0; site < a.v[1].volume(); ++site)
        if (lattice::lexicographic_coordinate(site, a.local.extents)[0] >= 4)
            for (int c = 0; c < lattice::spinor_components; ++c) a.v[4].at(site, c) = a.v[1].at(site, c);

    try {
        a.p.define(a.v);
        FAIL() << "dependent vectors were accepted";
    } catch (const error& e) {
        EXPECT_NE(std::string(e.what()).find("vector 4"), std::string::npos) << e.what();
        EXPECT_NE(std::string(e.what()).find("1.0.0.0"), std::string::npos) << e.what();
    }
}

TEST(AggregationErrors, ReplacementThatDependsToo) {
    aggregates a({4, 4, 4, 4}, {4, 4, 4, 4}, 4, 2);
    a.v[1].copy_from(a.v[0]);

    const std::string refused = halocline_test::refusal(
        [&] { a.p.define(a.v, [](std::int64_t, int, std::span<float> spinor) { std::ranges::fill(spinor, 0.0F); }); });

    EXPECT_NE(refused.find("vector 1 depends"), std::string::npos) << refused;
}

TEST(AggregationErrors, NaNIsNotReplaced) {
    aggregates a({4, 4, 4, 4}, {4, 4, 4, 4}, 4, 2);
    a.v[1].at(0, 0) = std::nanf("");

    const std::string refused = halocline_test::refusal(
        [&] { a.p.define(a.v, [](std::int64_t, int, std::span<float> spinor) { std::ranges::fill(spinor, 1.0F); }); });

    EXPECT_NE(refused.find("vector 1"), std::string::npos) << refused;
}

TEST(DefaultBlocks, NeverFail) {
    EXPECT_EQ(amg::default_blocks({8, 8, 8, 16}), (coordinate{4, 4, 4, 4}));
    EXPECT_EQ(amg::default_blocks({4, 4, 4, 4}), (coordinate{2, 2, 2, 2}));
    EXPECT_EQ(amg::default_blocks({6, 10, 12, 24}), (coordinate{3, 5, 3, 4}));
    EXPECT_EQ(amg::default_blocks({7, 5, 3, 4}), (coordinate{7, 5, 3, 2}));
    EXPECT_EQ(amg::default_blocks({14, 22, 26, 34}), (coordinate{7, 11, 13, 17})) << "twice a prime";
    EXPECT_EQ(amg::default_blocks({98, 154, 286, 2018}), (coordinate{7, 7, 11, 1009}));
    EXPECT_EQ(amg::default_blocks({9, 15, 21, 25}), (coordinate{3, 3, 3, 5})) << "odd";
    EXPECT_EQ(amg::default_blocks({1, 2, 35, 121}), (coordinate{1, 2, 5, 11}));
}

} // namespace
