// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/job.hpp>
#include <halocline/solvers/fgmres.hpp>
#include <halocline/solvers/field_space.hpp>
#include <halocline/solvers/minimal_residual.hpp>
#include <halocline_test/allocation_counter.hpp>
#include <halocline_test/refusal.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>

namespace {

using namespace halocline;
using solvers::complex;
using solvers::field_space;

template <class T>
void fill(lattice::field<T>& f, unsigned seed) {
    std::mt19937_64 g(seed);
    std::normal_distribution<double> normal;
    for (std::int64_t site = 0; site < f.volume(); ++site)
        for (int c = 0; c < f.components(); ++c) f.at(site, c) = static_cast<T>(normal(g));
}
template <class T>
complex value(const lattice::field<T>& f, std::int64_t site, int k) {
    return {f.at(site, 2 * k), f.at(site, 2 * k + 1)};
}
template <class T>
complex naive_product(const lattice::field<T>& a, const lattice::field<T>& b) {
    complex sum = 0;
    for (std::int64_t site = 0; site < a.volume(); ++site)
        for (int k = 0; k < a.components() / 2; ++k) sum += std::conj(value(a, site, k)) * value(b, site, k);
    return sum;
}
std::shared_ptr<const lattice::site_order> order_of_width(int lanes) {
    const lattice::coordinate extents{8, 4, 4, 4};
    if (lanes == 1) return lattice::site_order::lexicographic(extents);
    return lattice::site_order::blocked(lattice::box{{0, 0, 0, 0}, extents}, extents, {2, 2, 2, 2}, lanes);
}

template <class T>
class FieldSpace : public testing::Test {};
using reals = testing::Types<float, double>;
TYPED_TEST_SUITE(FieldSpace, reals);

TYPED_TEST(FieldSpace, ProductsAndSumsEqualNaiveOnes) {
    using T = TypeParam;
    static_assert(solvers::vector_space<field_space<T>, lattice::field<T>>);
    const comm::job job = comm::job::single();
    comm::global_sum sum(job);
    const double rounding = 40 * std::numeric_limits<T>::epsilon();
    for (int lanes : {1, 4, 8, 16}) {
        for (int components : {2, 6, 24}) {
            const auto order = order_of_width(lanes);
            field_space<T> space(order, components, sum);
            std::vector<lattice::field<T>> v;
            for (unsigned i = 0; i < 11; ++i) fill(v.emplace_back(space.make()), i);
            lattice::field<T> y = space.make(), before = space.make();
            fill(y, 100);
            before.copy_from(y);
            std::vector<complex> products(v.size()), c(v.size());
            for (std::size_t i = 0; i < c.size(); ++i) c[i] = {0.5 + 0.1 * double(i), 1 - 0.3 * double(i)};
            double norm = 0;
            const auto sums = sum.statistics().sums;

            ASSERT_EQ(space.multi_dot(v, y, products), comm::status::ok);
            ASSERT_EQ(space.norm(y, norm), comm::status::ok);
            space.combine(y, -2, c, v);

            EXPECT_EQ(sum.statistics().sums, sums + 2);
            const double scale = std::real(naive_product(before, before));
            EXPECT_NEAR(norm * norm, scale, 1e-12 * scale);
            for (std::size_t i = 0; i < v.size(); ++i)
                EXPECT_LE(std::abs(products[i] - naive_product(v[i], before)), 1e-12 * scale);
            for (std::int64_t site = 0; site < y.volume(); site += 3) {
                for (int k = 0; k < components / 2; ++k) {
                    complex expected = -2.0 * value(before, site, k);
                    for (std::size_t i = 0; i < v.size(); ++i) expected += c[i] * value(v[i], site, k);
                    EXPECT_LE(std::abs(value(y, site, k) - expected), rounding * 10);
                }
            }
        }
    }
}

TYPED_TEST(FieldSpace, SumsOfSeveralVectorsHaveTheBitsOfEach) {
    using T = TypeParam;
    static_assert(solvers::sums_of_several<field_space<T>, lattice::field<T>>);
    comm::run_threads(2, [](const comm::job& job) {
        for (const int most : {2, 6, 10, 64}) { // numbers in a sum
            comm::global_sum sum(job, most);
            field_space<T> space(order_of_width(4), 6, sum);
            std::vector<lattice::field<T>> v;
            for (unsigned i = 0; i < 7; ++i) fill(v.emplace_back(space.make()), i + 100 * unsigned(job.rank()));
            v[1].values()[0] = std::numeric_limits<T>::infinity();
            space.scale(v[2], std::is_same_v<T, double> ? 1e-160 : 1e-30);
            space.set_zero(v[3]);
            const std::vector<std::size_t> lengths{3, 0, 1, 7};
            std::vector<std::vector<complex>> products, alone;
            std::vector<solvers::dot_request<lattice::field<T>>> requests;
            for (const std::size_t n : lengths) products.emplace_back(n);
            alone = products;
            for (std::size_t k = 0; k < lengths.size(); ++k)
                requests.push_back({std::span<const lattice::field<T>>(v).first(lengths[k]), &v[6 - k], products[k]});
            std::vector<const lattice::field<T>*> all;
            for (const auto& one : v) all.push_back(&one);
            std::vector<double> norms(v.size());

            auto before = sum.statistics().sums;
            ASSERT_EQ(space.multi_dot(requests), comm::status::ok);
            EXPECT_EQ(sum.statistics().sums - before, (2 * 11 + most - 1) / (most / 2 * 2));
            before = sum.statistics().sums;
            ASSERT_EQ(space.norms(all, norms), comm::status::ok);
            if (most == 64) {
                EXPECT_EQ(sum.statistics().sums - before, 2); // some squares over- or underflow
            }

            for (std::size_t k = 0; k < lengths.size(); ++k) {
                ASSERT_EQ(space.multi_dot(requests[k].v, *requests[k].x, alone[k]), comm::status::ok);
                if (lengths[k] > 0) {
                    EXPECT_EQ(0, std::memcmp(alone[k].data(), products[k].data(), lengths[k] * sizeof(complex))) << k;
                }
            }
            for (std::size_t k = 0; k < v.size(); ++k) {
                double norm = 0;
                ASSERT_EQ(space.norm(v[k], norm), comm::status::ok);
                EXPECT_EQ(norm, norms[k]) << k;
            }
        }
    });
}

TYPED_TEST(FieldSpace, AllocatesOnlyInMake) {
    using T = TypeParam;
    const comm::job job = comm::job::single();
    comm::global_sum sum(job);
    field_space<T> space(order_of_width(4), 24, sum);
    std::vector<lattice::field<T>> v;
    for (unsigned i = 0; i < 3; ++i) fill(v.emplace_back(space.make()), i);
    complex c[2] = {1, 2};
    double norm = 0;

    const std::uint64_t made = halocline_test::allocations_in([&] {
        (void)space.multi_dot(std::span(v).first(2), v[2], c);
        (void)space.norm(v[0], norm);
        space.combine(v[2], 1, c, std::span<const lattice::field<T>>(v).first(2));
        space.axpy(v[0], 2, v[1]);
        space.scale(v[0], 0.5);
    });

    EXPECT_EQ(made, 0U);
}

TEST(FieldSpaceDouble, NormIsRightWhereTheSquaresUnderflow) {
    const comm::job job = comm::job::single();
    comm::global_sum sum(job);
    field_space<double> space(order_of_width(1), 2, sum);
    lattice::field<double> x = space.make();
    x.at(3, 0) = 3e-200;
    x.at(5, 1) = 4e-200;
    double norm = 0;

    ASSERT_EQ(space.norm(x, norm), comm::status::ok);

    EXPECT_NEAR(norm, 5e-200, 1e-214);
}

TEST(FieldSpaceDouble, NormOfNumbersThatAreNotNormalIsNotZero) {
    const comm::job job = comm::job::single();
    comm::global_sum sum(job);
    field_space<double> space(order_of_width(1), 2, sum);
    lattice::field<double> x = space.make();
    constexpr double least = std::numeric_limits<double>::denorm_min();
    x.at(3, 0) = 300 * least;
    x.at(5, 1) = 400 * least;
    double norm = 0;

    ASSERT_EQ(space.norm(x, norm), comm::status::ok);

    EXPECT_EQ(norm, 500 * least);
}

TEST(FieldSpaceDouble, NormIsRightWhereTheSquaresOverflow) {
    const comm::job job = comm::job::single();
    comm::global_sum sum(job);
    field_space<double> space(order_of_width(1), 2, sum);
    lattice::field<double> x = space.make();
    for (const double size : {1e140, 1e154, 1e200, 1e307}) {
        x.at(3, 0) = 3 * size;
        x.at(5, 1) = -4 * size;
        double norm = 0;
        const auto sums = sum.statistics().sums;

        ASSERT_EQ(space.norm(x, norm), comm::status::ok);

        EXPECT_NEAR(norm / size, 5, 1e-14) << size;
        EXPECT_EQ(sum.statistics().sums, sums + (size < 1e153 ? 1 : 2)) << size;
    }
}

TEST(FieldSpaceDouble, NormIsInfiniteWhereItOverflowsAndForAnInfinity) {
    const comm::job job = comm::job::single();
    comm::global_sum sum(job);
    field_space<double> space(order_of_width(1), 2, sum);
    for (const double number : {std::numeric_limits<double>::max(), std::numeric_limits<double>::infinity()}) {
        lattice::field<double> x = space.make();
        x.at(3, 0) = x.at(5, 1) = number;
        double norm = 0;

        ASSERT_EQ(space.norm(x, norm), comm::status::ok);

        EXPECT_EQ(norm, std::numeric_limits<double>::infinity()) << number;
    }
}

/// The numbers of the source and the solution are floats, its norm is none.
TEST(FieldSpaceFloat, MinimalResidualSolvesForANormBeyondFloats) {
    const comm::job job = comm::job::single();
    comm::global_sum sum(job);
    field_space<float> space(lattice::site_order::lexicographic({8, 4, 4, 4}), 24, sum);
    lattice::field<float> b = space.make(), x = space.make();
    for (std::int64_t site = 0; site < b.volume(); ++site)
        for (int c = 0; c < 24; ++c) b.at(site, c) = 4e36F;
    auto apply = [](lattice::field<float>& y, const lattice::field<float>& v) {
        for (std::int64_t site = 0; site < v.volume(); ++site)
            for (int c = 0; c < 24; ++c) y.at(site, c) = (c < 12 ? 2.0F : 3.0F) * v.at(site, c);
        return comm::status::ok;
    };
    solvers::minimal_residual_workspace<lattice::field<float>> work(space);
    solvers::solve_options options;
    options.tolerance = 1e-5;

    const solvers::solve_report report = solvers::minimal_residual(space, apply, b, x, work, options);

    EXPECT_TRUE(report.converged()) << to_string(report.status);
    EXPECT_NEAR(x.at(0, 0) / 2e36F, 1, 1e-4);
}

/// In single precision its residual would be rounded to 0.
TEST(FieldSpaceFloat, ASourceOfDenormalFloatsIsTooSmall) {
    const comm::job job = comm::job::single();
    comm::global_sum sum(job);
    field_space<float> space(lattice::site_order::lexicographic({8, 4, 4, 4}), 24, sum);
    lattice::field<float> b = space.make(), x = space.make();
    b.at(0, 0) = std::numeric_limits<float>::denorm_min();
    auto apply = [&](lattice::field<float>& y, const lattice::field<float>& v) {
        space.copy(y, v);
        space.scale(y, 1.2);
        return comm::status::ok;
    };
    solvers::minimal_residual_workspace<lattice::field<float>> work(space);

    const solvers::solve_report report = solvers::minimal_residual(space, apply, b, x, work, {});

    EXPECT_EQ(report.status, solvers::solve_status::source_too_small) << to_string(report.status);
}

TEST(FieldSpaceDouble, RefusesAnOddNumberOfComponents) {
    const comm::job job = comm::job::single();
    comm::global_sum sum(job);

    EXPECT_EQ(halocline_test::refusal([&] { field_space<double>(order_of_width(1), 3, sum); }),
              "field_space: 3 real components; complex fields need an even number, at least 2");
}

TEST(FieldSpaceDouble, RefusesASumOfOneValue) {
    const comm::job job = comm::job::single();
    comm::global_sum sum(job, 1);

    EXPECT_EQ(halocline_test::refusal([&] { field_space<double>(order_of_width(1), 2, sum); }),
              "field_space: a global sum of 1 values can't hold one complex product; give it at least 2");
}

/// The report of GMRES(12) with sums of so many values, and the number of sums.
struct counted_solve {
    solvers::solve_report report;
    std::uint64_t sums = 0;
};
counted_solve solve_with_sums_of(int values) {
    const comm::job job = comm::job::single();
    comm::global_sum sum(job, values);
    field_space<double> space(order_of_width(1), 2, sum);
    lattice::field<double> b = space.make(), x = space.make(), diagonal = space.make();
    fill(b, 1);
    fill(diagonal, 2);
    const auto apply = [&](lattice::field<double>& y, const lattice::field<double>& v) {
        for (std::int64_t site = 0; site < v.volume(); ++site)
            for (int c = 0; c < 2; ++c) y.at(site, c) = (5 + diagonal.at(site, 0)) * v.at(site, c);
        return comm::status::ok;
    };
    solvers::fgmres_workspace<lattice::field<double>> work(space, 12, false);
    counted_solve made{solvers::gmres(space, apply, b, x, work)};
    made.sums = sum.statistics().sums;
    return made;
}

TEST(FieldSpaceDouble, SplitsProductsThatOneSumDoesNotHold) {
    const counted_solve one_sum = solve_with_sums_of(solvers::values_per_sum(12)), several = solve_with_sums_of(8);

    for (const counted_solve* s : {&one_sum, &several})
        EXPECT_TRUE(s->report.converged()) << to_string(s->report.status);
    EXPECT_GT(one_sum.report.iterations, 12);
    EXPECT_EQ(several.report.history, one_sum.report.history);
    // per iteration one; besides, the norms of b and of each true residual
    const solvers::solve_report& r = one_sum.report;
    EXPECT_EQ(one_sum.sums, static_cast<std::uint64_t>(1 + r.matvecs + r.reorthogonalisations));
    EXPECT_GT(several.sums, one_sum.sums);
}

/// Solvers read b and x by the lengths of the workspace's vectors.
TEST(FieldSpaceDouble, RefusesVectorsOfAnotherShape) {
    const comm::job job = comm::job::single();
    comm::global_sum sum(job);
    field_space<double> space(order_of_width(1), 2, sum);
    solvers::fgmres_workspace<lattice::field<double>> work(space, 3);
    const auto identity = [](lattice::field<double>& y, const lattice::field<double>& x) {
        y.copy_from(x);
        return comm::status::ok;
    };
    const auto refused = [&](const lattice::field<double>& b, lattice::field<double>& x) {
        return halocline_test::refusal([&] { (void)solvers::gmres(space, identity, b, x, work); });
    };
    lattice::field<double> good = space.make(), small({2, 2, 2, 2}, 2), wide(order_of_width(1), 4), none;
    fill(good, 1);
    lattice::field<double> b = space.make();
    b.copy_from(good);
    const std::string right = "; must have 2 components on a box of 8.4.4.4";

    EXPECT_EQ(refused(small, good), "field_space: a vector has 2 components on a box of 2.2.2.2" + right);
    EXPECT_EQ(refused(b, small), "field_space: a vector has 2 components on a box of 2.2.2.2" + right);
    EXPECT_EQ(refused(wide, good), "field_space: a vector has 4 components on a box of 8.4.4.4" + right);
    EXPECT_EQ(refused(none, good), "field_space: a vector has no storage" + right);
    EXPECT_EQ(refused(b, good), "accepted");
    EXPECT_EQ(halocline_test::refusal([&] { field_space<double>(nullptr, 2, sum); }),
              "field_space: no site order was given");
}

/// As many values, but those of other sites beside each other.
TEST(FieldSpaceDouble, RefusesVectorsWhoseSitesLieElsewhere) {
    const comm::job job = comm::job::single();
    comm::global_sum sum(job);
    const lattice::box local{{0, 0, 0, 0}, {8, 4, 4, 4}};
    const auto blocks_of = [&](const lattice::coordinate& block) {
        return lattice::site_order::blocked(local, local.extents, block, 4);
    };
    field_space<double> space(blocks_of({2, 2, 2, 2}), 2, sum), plain(order_of_width(1), 2, sum);
    lattice::field<double> x = space.make(), other(blocks_of({4, 2, 2, 2}), 2), alike(blocks_of({2, 2, 2, 2}), 2),
                           even_first(lattice::site_order::even_odd(local), 2);
    const auto refused = [&](auto& by, const lattice::field<double>& y) {
        double norm = 0;
        return halocline_test::refusal([&] { (void)by.norm(y, norm); });
    };

    EXPECT_EQ(refused(space, other), "field_space: a vector has 2 components on a box of 8.4.4.4 in 4 lanes in another "
                                     "site order; must have 2 components on a box of 8.4.4.4 in 4 lanes");
    EXPECT_EQ(halocline_test::refusal([&] { space.axpy(x, 1, other); }), refused(space, other));
    EXPECT_EQ(refused(plain, even_first), "field_space: a vector has 2 components on a box of 8.4.4.4 in another site "
                                          "order; must have 2 components on a box of 8.4.4.4");
    EXPECT_EQ(refused(space, alike), "accepted") << "of another object, but every site in the same place";
}

/// Ghosts of a vector that is written count as stale.
TEST(FieldSpaceDouble, MarksWhatItWrites) {
    const comm::job job = comm::job::single();
    comm::global_sum sum(job);
    field_space<double> space(order_of_width(1), 2, sum);
    lattice::field<double> x = space.make(), y = space.make();
    const auto marks = [&](auto&& write) {
        const std::uint64_t before = y.version();
        write();
        return y.version() != before;
    };

    EXPECT_TRUE(marks([&] { space.set_zero(y); }));
    EXPECT_TRUE(marks([&] { space.copy(y, x); }));
    EXPECT_TRUE(marks([&] { space.scale(y, 2); }));
    EXPECT_TRUE(marks([&] { space.axpy(y, 1, x); }));
    double norm = 0;
    EXPECT_FALSE(marks([&] { (void)space.norm(y, norm); }));
}

TEST(FieldSpaceDouble, IterationCountDoesNotDependOnRanks) {
    std::vector<int> iterations;
    for (int ranks : {1, 2, 4}) {
        int counted = 0;
        comm::run_threads(ranks, [&](const comm::job& job) {
            const int local_t = 8 / job.ranks();
            const auto order = lattice::site_order::lexicographic({4, 4, 4, local_t});
            comm::global_sum sum(job);
            field_space<double> space(order, 2, sum);
            lattice::field<double> b = space.make(), x = space.make(), diagonal = space.make();
            const std::int64_t first = job.rank() * order->volume();
            for (std::int64_t site = 0; site < order->volume(); ++site) {
                const double phase = 0.37 * static_cast<double>(first + site);
                b.at(site, 0) = std::cos(phase);
                b.at(site, 1) = std::sin(3 * phase);
                diagonal.at(site, 0) = 2 + std::sin(phase);
                diagonal.at(site, 1) = std::cos(2 * phase);
            }
            auto apply = [&](lattice::field<double>& y, const lattice::field<double>& v) {
                for (std::int64_t site = 0; site < order->volume(); ++site) {
                    const complex z = value(diagonal, site, 0) * value(v, site, 0);
                    y.at(site, 0) = z.real();
                    y.at(site, 1) = z.imag();
                }
                return comm::status::ok;
            };
            solvers::fgmres_workspace<lattice::field<double>> work(space, 12, false);
            solvers::fgmres_options options;
            options.restart_length = 12;

            const solvers::solve_report report = solvers::gmres(space, apply, b, x, work, options);

            EXPECT_TRUE(report.converged());
            if (job.rank() == 0) counted = report.iterations;
        });
        iterations.push_back(counted);
    }

    EXPECT_GT(iterations[0], 12);
    EXPECT_EQ(iterations[1], iterations[0]);
    EXPECT_EQ(iterations[2], iterations[0]);
}

} // namespace
