// SPDX-License-Identifier: Apache-2.0
// The fast operator against the plain reference: every lane width, SIMD target, cut and kind of block.
#include <halocline/dirac/reference.hpp>
#include <halocline/dirac/wilson_clover.hpp>
#include <halocline/lattice/gauge_file.hpp>
#include <halocline/lattice/random.hpp>
#include <halocline_test/reference_data.hpp>
#include <halocline_test/simd_targets.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <limits>

using namespace halocline;
using dirac::wilson_clover;
using lattice::coordinate;
using lattice::decomposition;
using lattice::field;
using lattice::site_order;

namespace {

/// Values that depend on the global site alone.
template <class T>
field<T> random_field(const decomposition& cut, int rank, std::shared_ptr<const site_order> order,
                      std::uint32_t stream) {
    field<T> x(std::move(order), lattice::spinor_components);
    const lattice::box local = cut.local_box(rank);
    for (std::int64_t site = 0; site < x.volume(); ++site) {
        coordinate global = lattice::lexicographic_coordinate(site, local.extents);
        for (int mu = 0; mu < lattice::dimensions; ++mu) global[mu] += local.origin[mu];
        lattice::site_random random(7, stream,
                                    static_cast<std::uint64_t>(lattice::lexicographic_index(global, cut.global())));
        for (int c = 0; c < lattice::spinor_components; ++c) x.at(site, c) = static_cast<T>(random.normal());
    }
    return x;
}

/// Links near one: the clover term is neither zero nor dominant.
lattice::gauge_field warm_links(const decomposition& cut, int rank) {
    const lattice::box local = cut.local_box(rank);
    lattice::gauge_field links(site_order::lexicographic(local.extents), lattice::gauge_components);
    for (std::int64_t site = 0; site < links.volume(); ++site) {
        coordinate global = lattice::lexicographic_coordinate(site, local.extents);
        for (int mu = 0; mu < lattice::dimensions; ++mu) global[mu] += local.origin[mu];
        lattice::site_random random(7, 0,
                                    static_cast<std::uint64_t>(lattice::lexicographic_index(global, cut.global())));
        for (int mu = 0; mu < lattice::dimensions; ++mu) {
            dirac::su3 u{};
            for (int e = 0; e < 9; ++e) {
                const double re = random.normal(), im = random.normal();
                u[e] = std::complex<double>(e % 4 == 0 ? 1 : 0) + 0.2 * std::complex<double>(re, im);
            }
            u = dirac::reunitarise(u);
            for (int e = 0; e < 9; ++e) {
                links.at(site, mu * lattice::link_components + 2 * e) = u[e].real();
                links.at(site, mu * lattice::link_components + 2 * e + 1) = u[e].imag();
            }
        }
    }
    return links;
}

template <class T>
constexpr double rounding = std::is_same_v<T, float> ? 1e-5 : 1e-13;

template <class A, class B>
double difference(const field<A>& a, const field<B>& b) {
    double largest = 0, scale = 0;
    for (std::int64_t site = 0; site < a.volume(); ++site)
        for (int c = 0; c < a.components(); ++c) {
            const double va = static_cast<double>(a.at(site, c)), vb = static_cast<double>(b.at(site, c));
            if (!std::isfinite(va)) return std::numeric_limits<double>::infinity();
            largest = std::max(largest, std::abs(va - vb));
            scale = std::max(scale, std::abs(vb));
        }
    return largest / scale;
}

/// Norm of x on the sites of blocks of one colour (colour < 0: all).
template <class T>
double norm(const field<T>& x, int colour = -1) {
    const lattice::block_layout& b = *x.order().blocks();
    double sum = 0;
    for (std::int64_t site = 0; site < x.volume(); ++site) {
        const std::int64_t group = x.order().position(site) / x.order().lane_width() / b.sites_per_group;
        if (colour >= 0 && (group < b.groups[0] ? 0 : 1) != colour) continue;
        for (int c = 0; c < x.components(); ++c) sum += std::pow(static_cast<double>(x.at(site, c)), 2);
    }
    return std::sqrt(sum);
}

template <class T>
void subtract(field<T>& a, const field<T>& b) {
    for (std::size_t i = 0; i < a.values().size(); ++i) a.values()[i] -= b.values()[i];
}

template <class T>
bool padding_is_zero(const field<T>& x) {
    const std::int64_t lanes = x.order().lane_width();
    for (std::int64_t p = 0; p < x.order().outer_sites() * lanes; ++p)
        if (x.order().site(p) < 0)
            for (int c = 0; c < x.components(); ++c)
                if (x.outer(p / lanes)[c * lanes + p % lanes] != 0) return false;
    return true;
}

struct lattice_case {
    coordinate global, block;
};
const std::vector<lattice_case> cases{{{4, 4, 4, 4}, {2, 2, 2, 2}},  {{8, 8, 8, 8}, {4, 4, 4, 4}},
                                      {{6, 6, 6, 6}, {3, 3, 3, 3}},  {{7, 5, 3, 4}, {7, 5, 3, 2}},
                                      {{8, 4, 4, 12}, {4, 2, 4, 3}}, {{8, 8, 4, 4}, {8, 8, 4, 4}},
                                      {{2, 2, 4, 1}, {1, 2, 2, 1}}};
const std::vector<int> lane_widths{1, 4, 8, 16};

/// On these links no site-local matrix is nearly singular, so that rounding errors stay rounding errors.
const dirac::wilson_parameters well_conditioned{.m0 = 1, .csw = 1.2};

/// One rank's operator and what it is made of.
template <class T>
struct problem {
    problem(const comm::job& j, const lattice_case& c, const coordinate& rank_grid, int lane_width,
            dirac::wilson_parameters p = well_conditioned)
        : cut(decomposition::even(c.global, rank_grid, c.block)), rank(j.rank()), links(j, cut, warm_links(cut, rank)),
          reference(j, cut, links, p), plain(site_order::lexicographic(cut.local_box(rank).extents)),
          order(site_order::blocked(cut.local_box(rank), c.global, c.block, lane_width)),
          fast(j, cut, links, p, order) {}

    [[nodiscard]] field<T> random(std::uint32_t stream) const { return random_field<T>(cut, rank, order, stream); }
    [[nodiscard]] field<T> zero() const { return field<T>(order, lattice::spinor_components); }
    /// The reference's D x.
    [[nodiscard]] field<double> expected(const field<T>& x) {
        field<double> in(plain, x.components()), out(plain, x.components());
        for (std::int64_t site = 0; site < x.volume(); ++site)
            for (int c = 0; c < x.components(); ++c) in.at(site, c) = static_cast<double>(x.at(site, c));
        reference.apply(out, in);
        return out;
    }

    decomposition cut;
    int rank;
    dirac::padded_links links;
    dirac::reference_operator reference;
    std::shared_ptr<const site_order> plain, order;
    wilson_clover<T> fast;
};

template <class T>
void expect_apply_equals_reference(problem<T>& p) {
    const field<T> x = p.random(1);
    field<T> y = p.zero();
    for (int repeat = 0; repeat < 3; ++repeat) { // both slots of the ghosts
        ASSERT_EQ(p.fast.apply(y, x), comm::status::ok);
        EXPECT_LT(difference(y, p.expected(x)), rounding<T>);
    }
    EXPECT_TRUE(padding_is_zero(y));
}

/// D = D_block + the eight faces one by one, and the faces as sums over the colours of the sources.
template <class T>
void expect_faces_sum_up(problem<T>& p) {
    const field<T> x = p.random(1);
    field<T> by_face = p.zero(), by_colour = p.zero(), halves = p.zero();
    p.fast.apply_block(by_face, x);
    by_colour.copy_from(by_face);
    halves.copy_from(by_face);

    p.fast.start_surface(x);
    ASSERT_EQ(p.fast.finish_surface(), comm::status::ok);
    for (unsigned f = 0; f < lattice::faces; ++f) p.fast.add_surface(by_face, -1, 1U << f);
    for (int target = 0; target < 2; ++target) {
        p.fast.add_surface(halves, target, 0x55, T(0.5));
        p.fast.add_surface(halves, target, 0xaa, T(2));
        p.fast.add_surface(halves, target, 0x55, T(0.5));
        p.fast.add_surface(halves, target, 0xaa, T(-1));
    }
    for (int source = 0; source < 2; ++source) {
        p.fast.start_surface(x, source);
        ASSERT_EQ(p.fast.finish_surface(), comm::status::ok);
        p.fast.add_surface(by_colour);
    }

    const field<double> expected = p.expected(x);
    EXPECT_LT(difference(by_face, expected), rounding<T>);
    EXPECT_LT(difference(halves, expected), rounding<T>);
    EXPECT_LT(difference(by_colour, expected), rounding<T>);
    EXPECT_TRUE(padding_is_zero(by_colour));
}

/// Adding while messages fly gives the bits that adding afterwards gives, on every source and target.
template <class T>
void expect_overlap_keeps_bits(problem<T>& p) {
    const field<T> x = p.random(1);
    for (int source = -1; source < 2; ++source)
        for (int target = -1; target < 2; ++target) {
            field<T> after = p.random(2), during = p.random(2);

            p.fast.start_surface(x, source);
            ASSERT_EQ(p.fast.finish_surface(), comm::status::ok);
            p.fast.add_surface(after, target, 0xff, T(-0.5));
            p.fast.start_surface(x, source);
            ASSERT_EQ(p.fast.finish_and_add_surface(during, target, T(-0.5)), comm::status::ok);

            EXPECT_TRUE(std::ranges::equal(during.values(), after.values())) << source << " to " << target;
        }
}

/// What block_solve() returns is the residual of what it added to x.
template <class T>
void expect_residual_identity(problem<T>& p, int colour) {
    const field<T> r_in = p.random(2), x_in = p.random(3);
    field<T> x = p.zero(), r = p.zero(), update = p.zero(), image = p.zero();
    x.copy_from(x_in);
    r.copy_from(r_in);

    p.fast.block_solve(x, r, update, colour, 4);

    p.fast.apply_block(image, update);
    field<T> x_before = p.zero();
    x_before.copy_from(x);
    subtract(x_before, update);
    // r + D_block e = r_in: compared with r_in, since r itself may be small
    for (std::size_t i = 0; i < image.values().size(); ++i) image.values()[i] += r.values()[i];
    EXPECT_LT(difference(image, r_in), rounding<T>);
    EXPECT_LT(difference(x_before, x_in), rounding<T>);
    if (norm(r_in, colour) > 0) {
        EXPECT_LT(norm(r, colour), 0.5 * norm(r_in, colour));
    }
    if (colour >= 0) {
        EXPECT_EQ(norm(update, 1 - colour), 0);
        EXPECT_EQ(norm(r, 1 - colour), norm(r_in, 1 - colour));
    }
    EXPECT_TRUE(padding_is_zero(x) && padding_is_zero(r) && padding_is_zero(update));
}

comm::job_options small_job() {
    comm::job_options options;
    options.transports = {"shm"};
    options.slab_bytes = std::size_t{256} << 20;
    options.deadline = std::chrono::seconds(30);
    return options;
}

/// Runs `body(problem)` for all cases, lane widths and both precisions on one rank.
template <class Body>
void for_each_problem(Body&& body) {
    const comm::job j = comm::job::single(small_job());
    for (const lattice_case& c : cases)
        for (int w : lane_widths) {
            SCOPED_TRACE(lattice::to_string(c.global) + " in " + lattice::to_string(c.block) +
                         ", W = " + std::to_string(w));
            problem<double> p(j, c, {1, 1, 1, 1}, w);
            body(p);
            problem<float> q(j, c, {1, 1, 1, 1}, w);
            body(q);
        }
}

} // namespace

TEST(WilsonClover, EqualsTheReference) {
    for_each_problem([](auto& p) { expect_apply_equals_reference(p); });
}

TEST(WilsonClover, IsTheSumOfBlocksAndFaces) {
    for_each_problem([](auto& p) { expect_faces_sum_up(p); });
}

TEST(WilsonClover, BlockSolveReturnsTheResidualOfItsUpdate) {
    for_each_problem([](auto& p) {
        for (int colour = -1; colour < 2; ++colour) expect_residual_identity(p, colour);
    });
}

TEST(PublicFiles, HaveTheKnownNorms) {
    struct known {
        const char* file;
        coordinate extents, block;
        double norm_of_d_one;
    };
    for (const known& k : {known{"4x4x4x4b6.0000id3n1", {4, 4, 4, 4}, {2, 2, 2, 2}, 227.892329439098},
                           known{"8x8x8x8b6.0000id3n1", {8, 8, 8, 8}, {4, 4, 4, 4}, 896.809175505568}}) {
        const std::string path = halocline_test::reference_file(k.file);
        if (path.empty()) GTEST_SKIP() << "no file " << k.file;
        const comm::job j = comm::job::single(small_job());
        const decomposition cut = decomposition::even(k.extents, {1, 1, 1, 1});
        const lattice::box local = cut.local_box(0);
        lattice::gauge_field gauge(site_order::lexicographic(k.extents), lattice::gauge_components);
        (void)lattice::read_links(lattice::open_gauge_file(path), local, gauge);
        wilson_clover<double> d(j, cut, dirac::padded_links(j, cut, gauge), {},
                                site_order::blocked(local, k.extents, k.block, 8));
        field<double> ones(d.order(), lattice::spinor_components), y(d.order(), lattice::spinor_components);
        for (std::int64_t site = 0; site < ones.volume(); ++site)
            for (int c = 0; c < lattice::spinor_components; c += 2) ones.at(site, c) = 1;

        ASSERT_EQ(d.apply(y, ones), comm::status::ok);

        EXPECT_NEAR(norm(y) / k.norm_of_d_one, 1, 1e-12);
    }
}

TEST(WilsonClover, EveryBoundaryEqualsTheReference) {
    using lattice::boundary;
    const comm::job j = comm::job::single(small_job());
    for (const boundary b : {boundary::periodic, boundary::antiperiodic, boundary::open}) {
        dirac::wilson_parameters parameters{.m0 = 0.1, .csw = 0.7};
        parameters.boundaries = {b, boundary::periodic, boundary::antiperiodic, b};
        problem<double> p(j, {{4, 2, 2, 8}, {2, 2, 2, 4}}, {1, 1, 1, 1}, 4, parameters);
        expect_apply_equals_reference(p);
    }
}

TEST(WilsonClover, ManyStepsSolveTheBlocks) {
    const comm::job j = comm::job::single(small_job());
    problem<double> p(j, {{4, 4, 4, 8}, {2, 4, 4, 4}}, {1, 1, 1, 1}, 8);
    const field<double> r_in = p.random(2);
    field<double> x = p.zero(), r = p.zero(), update = p.zero(), image = p.zero();
    r.copy_from(r_in);

    p.fast.block_solve(x, r, update, -1, 150);

    p.fast.apply_block(image, x);
    EXPECT_LT(norm(r), 1e-11 * norm(r_in));
    EXPECT_LT(difference(image, r_in), 1e-11);
}

TEST(WilsonClover, BlockSolveLeavesZeroBlocksAlone) {
    const comm::job j = comm::job::single(small_job());
    problem<float> p(j, {{8, 8, 8, 8}, {4, 4, 4, 4}}, {1, 1, 1, 1}, 16);
    const field<float> x_in = p.random(3);
    field<float> x = p.zero(), r = p.zero(), update = p.zero();
    x.copy_from(x_in);
    r.at(0, 0) = 1; // one block has a residual

    p.fast.block_solve(x, r, update, -1, 4);

    int changed = 0;
    for (std::int64_t site = 0; site < x.volume(); ++site) {
        const coordinate c = lattice::lexicographic_coordinate(site, {8, 8, 8, 8});
        const bool first_block = c[0] < 4 && c[1] < 4 && c[2] < 4 && c[3] < 4;
        for (int k = 0; k < lattice::spinor_components; ++k) {
            if (first_block)
                changed += x.at(site, k) != x_in.at(site, k) ? 1 : 0;
            else
                ASSERT_EQ(x.at(site, k), x_in.at(site, k)) << "site " << site;
        }
    }
    EXPECT_GT(changed, 0);
    EXPECT_TRUE(std::isfinite(norm(x)));
}

TEST(WilsonClover, ZeroStepsOnlyEliminateTheOddSites) {
    const comm::job j = comm::job::single(small_job());
    problem<double> p(j, {{4, 4, 4, 4}, {4, 4, 2, 2}}, {1, 1, 1, 1}, 4);
    field<double> x = p.zero(), r = p.random(2), update = p.zero();

    p.fast.block_solve(x, r, update, -1, 0);

    for (std::int64_t site = 0; site < r.volume(); ++site) {
        const bool odd = lattice::parity(lattice::lexicographic_coordinate(site, {4, 4, 4, 4})) == 1;
        for (int c = 0; c < lattice::spinor_components; ++c)
            ASSERT_EQ(odd ? r.at(site, c) : update.at(site, c), 0) << "site " << site;
    }
}

class WilsonCloverOnRanks : public testing::TestWithParam<coordinate> {};
INSTANTIATE_TEST_SUITE_P(Threads, WilsonCloverOnRanks,
                         testing::Values(coordinate{1, 1, 1, 2}, coordinate{2, 1, 1, 1}, coordinate{1, 1, 1, 3},
                                         coordinate{1, 2, 1, 2}, coordinate{2, 2, 1, 3}),
                         [](const auto& grid) {
                             std::string name = lattice::to_string(grid.param);
                             std::ranges::replace(name, '.', '_');
                             return name;
                         });

TEST_P(WilsonCloverOnRanks, EqualsTheReferenceAndTheSumOfBlocksAndFaces) {
    const coordinate grid = GetParam();
    // 4 blocks in t: three ranks get 2 + 1 + 1
    const lattice_case c{{8, 4, 4, 12}, {4, 2, 4, 3}};
    comm::run_threads(
        static_cast<int>(lattice::volume(grid)),
        [&](const comm::job& j) {
            for (int w : {4, 16}) {
                problem<double> p(j, c, grid, w);
                expect_apply_equals_reference(p);
                expect_faces_sum_up(p);
                expect_overlap_keeps_bits(p);
                problem<float> q(j, c, grid, w);
                expect_apply_equals_reference(q);
                expect_faces_sum_up(q);
                expect_overlap_keeps_bits(q);
                EXPECT_GT(q.fast.statistics().exchanges, 0U);
            }
        },
        small_job());
}

TEST(WilsonCloverOnRanks, BlockSolveDoesNotDependOnTheCut) {
    const lattice_case c{{8, 8, 4, 4}, {4, 4, 4, 2}};
    std::array<double, 2> sums{};
    for (int ranks = 1; ranks <= 2; ++ranks)
        comm::run_threads(
            ranks,
            [&](const comm::job& j) {
                problem<double> p(j, c, {1, ranks, 1, 1}, 8);
                field<double> x = p.zero(), r = p.random(2), update = p.zero();
                p.fast.block_solve(x, r, update, 0, 4);
                double sum = 0; // depends on the position of every value
                for (std::int64_t site = 0; site < x.volume(); ++site) {
                    coordinate g = lattice::lexicographic_coordinate(site, p.order->extents());
                    for (int mu = 0; mu < lattice::dimensions; ++mu) g[mu] += p.cut.local_box(j.rank()).origin[mu];
                    for (int k = 0; k < lattice::spinor_components; ++k)
                        sum += x.at(site, k) *
                               std::cos(static_cast<double>(lattice::lexicographic_index(g, c.global)) + 0.1 * k);
                }
                for (const std::string& part : j.gather(std::to_string(sum * 1e6)))
                    if (j.rank() == 0) sums[static_cast<std::size_t>(ranks - 1)] += std::stod(part) / 1e6;
            },
            small_job());
    EXPECT_NE(sums[0], 0);
    EXPECT_NEAR(sums[0], sums[1], 1e-9);
}

TEST(WilsonClover, EverySimdTargetEqualsTheReference) {
    halocline_test::on_each_simd_target([] {
        const bool avx = (hwy::SupportedTargets() & (HWY_AVX3 | HWY_AVX2)) != 0;
        EXPECT_EQ(dirac::preferred_lane_width(), avx ? 8 : 4);
        const comm::job j = comm::job::single(small_job());
        for (int w : lane_widths) {
            problem<double> p(j, {{8, 4, 8, 4}, {4, 4, 4, 4}}, {1, 1, 1, 1}, w);
            expect_apply_equals_reference(p);
            expect_residual_identity(p, 0);
            problem<float> q(j, {{8, 4, 8, 4}, {4, 4, 4, 4}}, {1, 1, 1, 1}, w);
            expect_apply_equals_reference(q);
            expect_residual_identity(q, 1);
        }
    });
}

TEST(WilsonClover, RefusesAnUnblockedOrderAndASingularDiagonal) {
    const comm::job j = comm::job::single(small_job());
    const decomposition cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    const dirac::padded_links links(j, cut, warm_links(cut, 0));
    const auto blocked = site_order::blocked(cut.local_box(0), cut.global(), {2, 2, 2, 2}, 4);

    EXPECT_THROW(wilson_clover<float>(j, cut, links, {}, site_order::lexicographic({4, 4, 4, 4})), input_error);
    EXPECT_THROW(wilson_clover<float>(j, cut, links, {.m0 = -4, .csw = 0}, blocked), input_error);
    EXPECT_NO_THROW(wilson_clover<float>(j, cut, links, {.m0 = -3, .csw = 0}, blocked));
}
