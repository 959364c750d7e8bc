// SPDX-License-Identifier: Apache-2.0
#include "norms.hpp"

#include <halocline/amg/two_level.hpp>
#include <halocline/base/error.hpp>
#include <halocline_test/allocation_counter.hpp>
#include <halocline_test/global_fields.hpp>
#include <halocline_test/refusal.hpp>
#include <halocline_test/worse.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <span>
#include <string>

namespace {

using namespace halocline;
using lattice::coordinate;

/// Operator, hierarchy and a few vectors on one rank of a job.
struct problem {
    problem(const comm::job& j, const coordinate& global, const coordinate& rank_grid, const coordinate& block,
            const amg::solver_options& options, int lane_width = 4)
        : cut(lattice::decomposition::even(global, rank_grid, block)), local(cut.local_box(j.rank())),
          links(j, cut, halocline_test::links_near_one(cut.local_box(j.rank()), cut.global(), 0.25)),
          d(j, cut, links, {}, lattice::site_order::blocked(local, global, block, lane_width)), blocks(d, links),
          hierarchy(j, cut, blocks, options), coarse(amg::coarse_decomposition(cut, block)),
          coarse_local(coarse.local_box(j.rank())) {}
    [[nodiscard]] lattice::field<float> fine_field() const { return {d.order(), lattice::spinor_components}; }
    [[nodiscard]] lattice::field<float> coarse_field(std::uint32_t stream = 0) {
        lattice::field<float> f(hierarchy.coarse().order(), hierarchy.coarse().components());
        halocline_test::fill_random(f, coarse_local, coarse.global(), stream);
        return f;
    }

    lattice::decomposition cut;
    lattice::box local;
    dirac::padded_links links;
    dirac::wilson_clover<float> d;
    dirac::schwarz_blocks<float> blocks;
    amg::two_level hierarchy;
    lattice::decomposition coarse;
    lattice::box coarse_local;
};

amg::solver_options few_vectors(int vectors, int setup_iterations = 0) {
    amg::solver_options options;
    options.vectors = vectors;
    options.setup_iterations = setup_iterations;
    return options;
}

/// The coarse operator of another fine one, with the hierarchy's P.
comm::status define(amg::two_level& hierarchy, dirac::wilson_clover<float>& d) {
    auto work = hierarchy.coarse().make_workspace(hierarchy.interpolation());
    return hierarchy.coarse().define(hierarchy.interpolation(), d, work);
}

void expect_ok(comm::status s) { ASSERT_EQ(s, comm::status::ok) << comm::to_string(s); }

struct shape {
    coordinate global, rank_grid, block;
};

class CoarseOperator : public testing::TestWithParam<shape> {
  protected:
    void run(const std::function<void(problem&)>& body) const {
        const shape s = GetParam();
        comm::run_threads(static_cast<int>(lattice::volume(s.rank_grid)), [&](const comm::job& j) {
            problem p(j, s.global, s.rank_grid, s.block, few_vectors(6));
            p.hierarchy.setup();
            body(p);
        });
    }
};

TEST_P(CoarseOperator, IsTheGalerkinProduct) {
    run([](problem& p) {
        const lattice::field<float> x = p.coarse_field(1);
        lattice::field<float> dx = p.coarse_field(), rapx = p.coarse_field(), px = p.fine_field(), dpx = p.fine_field();

        expect_ok(p.hierarchy.coarse().apply(dx, x));
        p.hierarchy.interpolation().prolong(px, x);
        expect_ok(p.d.apply(dpx, px));
        p.hierarchy.interpolation().restrict(rapx, dpx);

        EXPECT_LT(halocline_test::distance(dx, rapx), 1e-5);
    });
}

TEST_P(CoarseOperator, IsGamma5Hermitian) {
    run([](problem& p) {
        const lattice::field<float> x = p.coarse_field(1);
        lattice::field<float> y = p.coarse_field(2), dx = p.coarse_field(), dy = p.coarse_field();
        const auto gamma5 = [](lattice::field<float>& v) {
            for (std::int64_t s = 0; s < v.volume(); ++s)
                for (int c = v.components() / 2; c < v.components(); ++c) v.at(s, c) = -v.at(s, c);
        };
        comm::global_sum sum(p.hierarchy.job());
        const auto inner = [&](const lattice::field<float>& a, const lattice::field<float>& b) {
            std::array<double, 2> values{};
            for (std::size_t k = 0; k < a.values().size(); k += 2) {
                const double ar = a.values()[k], ai = a.values()[k + 1], br = b.values()[k], bi = b.values()[k + 1];
                values[0] += ar * br + ai * bi;
                values[1] += ar * bi - ai * br;
            }
            expect_ok(sum(values));
            return std::complex<double>(values[0], values[1]);
        };

        // <y, Gamma5 D x> = <Gamma5 D y, x>
        expect_ok(p.hierarchy.coarse().apply(dx, x));
        gamma5(dx);
        expect_ok(p.hierarchy.coarse().apply(dy, y));
        gamma5(dy);

        const std::complex<double> left = inner(y, dx), right = inner(dy, x);
        const double scale = std::sqrt(inner(dx, dx).real() * inner(y, y).real());
        EXPECT_LT(std::abs(left - right), 1e-5 * scale);
        EXPECT_GT(std::abs(left), 1e-4 * scale);
    });
}

/// For lattices whose blocks have two colours.
class BipartiteCoarseOperator : public CoarseOperator {};

TEST_P(BipartiteCoarseOperator, SchurFormSolvesTheSameSystem) {
    run([](problem& p) {
        amg::coarse_operator& d = p.hierarchy.coarse();
        ASSERT_TRUE(d.bipartite());
        const lattice::field<float> x = p.coarse_field(1);
        lattice::field<float> b = p.coarse_field(), again = p.coarse_field(3);
        lattice::field<float> xe(d.half_order(), d.components()), sxe(d.half_order(), d.components()),
            be(d.half_order(), d.components());
        const std::int64_t even = (x.volume() + (lattice::parity(p.coarse_local.origin) == 0 ? 1 : 0)) / 2;
        std::copy_n(x.data(), even * d.components(), xe.data());

        expect_ok(d.apply(b, x)); // b = D x
        expect_ok(d.reduce(be, b));
        expect_ok(d.apply_schur(sxe, xe));
        expect_ok(d.reconstruct(again, xe, b));

        if (even > 0) { // S x_e = b_e - D_eo D_oo^-1 b_o
            EXPECT_LT(halocline_test::distance(sxe, be), 2e-5);
        }
        EXPECT_LT(halocline_test::distance(again, x), 2e-5);
    });
}

/// Calls f(y, x) on several fields at once, and on each alone, and expects the same bits. make() makes a y.
template <class Make, class F>
void expect_same_bits(std::span<const lattice::field<float>> x, Make&& make, F&& f) {
    for (std::size_t count = 1; count <= x.size(); ++count) {
        std::vector<lattice::field<float>> y;
        for (std::size_t k = 0; k < count; ++k) y.push_back(make());
        std::vector<lattice::field<float>*> to;
        std::vector<const lattice::field<float>*> from;
        for (std::size_t k = 0; k < count; ++k) {
            to.push_back(&y[k]);
            from.push_back(&x[k]);
        }
        expect_ok(f(to, from));
        for (std::size_t k = 0; k < count; ++k) {
            lattice::field<float> alone = make();
            expect_ok(f(std::vector{&alone}, std::vector{&x[k]}));
            EXPECT_TRUE(std::ranges::equal(y[k].values(), alone.values())) << count << " fields, " << k;
        }
    }
}

TEST_P(CoarseOperator, OfSeveralFieldsGivesTheBitsOfEach) {
    const shape s = GetParam();
    using fields = amg::coarse_operator::fields;
    using const_fields = amg::coarse_operator::const_fields;
    comm::run_threads(static_cast<int>(lattice::volume(s.rank_grid)), [&](const comm::job& j) {
        amg::solver_options options = few_vectors(6);
        options.at_once = 6;
        problem p(j, s.global, s.rank_grid, s.block, options);
        p.hierarchy.setup();
        amg::coarse_operator& d = p.hierarchy.coarse();
        std::vector<lattice::field<float>> x;
        for (std::uint32_t k = 0; k < 6; ++k) x.push_back(p.coarse_field(k));

        const auto full = [&] { return p.coarse_field(9); };
        const auto half = [&] { return lattice::field<float>(d.half_order(), d.components()); };
        std::vector<lattice::field<float>> solutions;
        for (std::size_t k = 0; k < x.size(); ++k) solutions.push_back(full());

        expect_same_bits(x, full, [&](fields y, const_fields v) { return d.apply(y, v); });
        for (std::size_t count = 1; count <= x.size(); ++count) {
            amg::coarse_solver& solve = p.hierarchy.coarse_level();
            expect_ok(solve(std::span(solutions).first(count), std::span(x).first(count)));
            for (std::size_t k = 0; k < count; ++k) {
                lattice::field<float> alone = full();
                expect_ok(solve(alone, x[k]));
                EXPECT_TRUE(std::ranges::equal(alone.values(), solutions[k].values())) << count << " systems, " << k;
            }
        }
        if (!d.bipartite()) return;
        std::vector<lattice::field<float>> even;
        for (std::size_t k = 0; k < x.size(); ++k) even.push_back(half());
        expect_same_bits(x, half, [&](fields y, const_fields b) { return d.reduce(y, b); });
        for (std::size_t k = 0; k < x.size(); ++k) expect_ok(d.reduce(even[k], x[k]));
        expect_same_bits(even, half, [&](fields y, const_fields v) { return d.apply_schur(y, v); });
        expect_same_bits(x, full, [&](fields y, const_fields b) {
            std::vector<const lattice::field<float>*> xe;
            for (const lattice::field<float>* one : b) xe.push_back(&even[static_cast<std::size_t>(one - x.data())]);
            return d.reconstruct(y, xe, b);
        });
    });
}

// With a plan for each number of fields, or nearly so.
TEST(CoarseOperator, SendsAtMostHalfAsManyFieldsAgain) {
    comm::run_threads(2, [](const comm::job& j) {
        amg::solver_options options = few_vectors(6);
        options.at_once = 11;
        problem p(j, {4, 4, 4, 8}, {1, 1, 1, 2}, {2, 2, 2, 2}, options);
        p.hierarchy.setup();
        amg::coarse_operator& d = p.hierarchy.coarse();
        std::vector<lattice::field<float>> x, y;
        std::vector<const lattice::field<float>*> from;
        std::vector<lattice::field<float>*> to;
        for (std::uint32_t k = 0; k < 12; ++k) {
            x.push_back(p.coarse_field(k));
            y.push_back(p.coarse_field(k));
        }
        for (std::size_t k = 0; k < 12; ++k) {
            from.push_back(&x[k]);
            to.push_back(&y[k]);
        }
        const auto bytes_of = [&](std::size_t count) {
            d.reset_statistics();
            expect_ok(d.apply(std::span(to).first(count), std::span(from).first(count)));
            return d.statistics().by_transport.front().bytes;
        };
        const std::uint64_t one = bytes_of(1);
        for (const auto& [count, sent] : std::map<std::size_t, std::uint64_t>{
                 {2, 2}, {3, 3}, {4, 4}, {5, 6}, {6, 6}, {7, 8}, {8, 8}, {9, 11}, {11, 11}})
            EXPECT_EQ(bytes_of(count), sent * one) << count;

        EXPECT_EQ(d.apply(to, from), comm::status::misused); // one too many
        EXPECT_EQ(d.apply(std::span(to).first(2), std::span(from).first(1)), comm::status::misused);
        EXPECT_EQ(d.apply(std::span(to).first(0), std::span(from).first(0)), comm::status::misused);
        std::vector<lattice::field<float>> fine_x, fine_b;
        for (int k = 0; k < 12; ++k) {
            fine_x.push_back(p.fine_field());
            fine_b.push_back(p.fine_field());
        }
        EXPECT_EQ(halocline_test::refusal([&] { (void)p.hierarchy.cycle(fine_x, fine_b); }),
                  "two_level: 12 fields x and 12 fields b; must be equally many, 1 to 11");
        EXPECT_EQ(halocline_test::refusal([&] { (void)p.hierarchy.coarse_level()(y, std::span(x).first(2)); }),
                  "coarse_solver: 12 fields x and 2 fields b; must be equally many, 1 to 11");
        expect_ok(d.apply(y[0], x[0])); // still good
    });
}

const auto bipartite_shapes =
    testing::Values(shape{{4, 4, 4, 8}, {1, 1, 1, 1}, {2, 2, 2, 2}}, shape{{4, 4, 4, 8}, {1, 1, 1, 2}, {2, 2, 2, 2}},
                    shape{{8, 4, 4, 4}, {2, 1, 2, 1}, {2, 2, 2, 2}}, shape{{4, 4, 4, 8}, {1, 1, 1, 3}, {2, 2, 2, 2}},
                    shape{{4, 4, 4, 4}, {1, 1, 2, 2}, {2, 2, 2, 2}},
                    shape{{4, 4, 4, 4}, {2, 2, 2, 2}, {2, 2, 2, 2}}); // ranks without even sites
INSTANTIATE_TEST_SUITE_P(Bipartite, CoarseOperator, bipartite_shapes);
INSTANTIATE_TEST_SUITE_P(Bipartite, BipartiteCoarseOperator, bipartite_shapes);
INSTANTIATE_TEST_SUITE_P(Odd, CoarseOperator, testing::Values(shape{{6, 5, 4, 3}, {3, 1, 1, 1}, {2, 5, 2, 3}}));

// On links of one, two vectors, constant and of alternating sign, in spins that no hop inside a block joins. So the
// block is diagonal, with the eigenvalues m0 + 2, from which inner hops take what they can, and m0 + 6, to which they
// add.
TEST(CoarseOperator, RefusesAnOddDiagonalBlockThatIsSingularInSinglePrecision) {
    const comm::job j = comm::job::single();
    problem p(j, {4, 4, 4, 4}, {1, 1, 1, 1}, {2, 2, 2, 2}, few_vectors(2));
    std::vector<lattice::field<float>> vectors;
    for (int i = 0; i < 2; ++i) {
        vectors.push_back(p.fine_field());
        halocline_test::for_each_site(p.local, [&](std::int64_t site, const coordinate& x) {
            for (const int spin : {0, 3})
                vectors.back().at(site, 6 * spin) = i == 1 && lattice::parity(x) == 1 ? -1.0F : 1.0F;
        });
    }
    p.hierarchy.interpolation().define(vectors);
    const dirac::padded_links unit(j, p.cut, halocline_test::links_near_one(p.local, p.cut.global(), 0));
    const auto refused = [&](double least) {
        dirac::wilson_clover<float> d(j, p.cut, unit, {.m0 = least - 2, .csw = 0}, p.d.order());
        expect_ok(define(p.hierarchy, d));
        return halocline_test::refusal([&] { p.hierarchy.coarse().invert_odd(); });
    };

    EXPECT_EQ(refused(0x1p-20), "accepted");
    ASSERT_EQ(p.hierarchy.coarse().element(1, -1, 0, 0), 0x1p-20F);
    ASSERT_NEAR(p.hierarchy.coarse().element(1, -1, 1, 1).real(), 4, 1e-5);
    const std::string text = refused(0x1p-22); // a quarter of the precision of 4
    EXPECT_EQ(p.hierarchy.coarse().element(1, -1, 0, 0), 0x1p-22F);
    EXPECT_EQ(text, "the diagonal block of the coarse operator at coarse site 1.0.0.0 is singular in single precision; "
                    "is the gauge field, or are m0 and csw, what they should be?");
}

TEST(CoarseOperator, RefusesAnOddDiagonalBlockWhoseInverseOverflows) {
    const comm::job j = comm::job::single();
    problem p(j, {2, 2, 2, 2}, {1, 1, 1, 1}, {1, 1, 1, 1}, few_vectors(6));
    std::vector<lattice::field<float>> vectors;
    for (std::uint32_t i = 0; i < 6; ++i) {
        vectors.push_back(p.fine_field());
        halocline_test::fill_random(vectors.back(), p.local, p.cut.global(), i);
    }
    p.hierarchy.interpolation().define(vectors);
    const auto refused = [&](double csw) { // a block is one site: without a mass only the clover term is left
        dirac::wilson_clover<float> d(j, p.cut, p.links, {.m0 = -4, .csw = csw}, p.d.order());
        expect_ok(define(p.hierarchy, d));
        return halocline_test::refusal([&] { p.hierarchy.coarse().invert_odd(); });
    };

    EXPECT_EQ(refused(1e-10), "accepted");
    EXPECT_NE(refused(1e-40).find("is singular in single precision"), std::string::npos);
}

/// Every element of D_c by (global coarse site, link, row, column).
std::map<std::array<int, 4>, std::complex<float>> elements(const coordinate& rank_grid) {
    std::map<std::array<int, 4>, std::complex<float>> all;
    std::mutex guard;
    comm::run_threads(static_cast<int>(lattice::volume(rank_grid)), [&](const comm::job& j) {
        problem p(j, {4, 4, 4, 6}, rank_grid, {2, 2, 2, 2}, few_vectors(4, 1), j.rank() % 2 == 0 ? 4 : 8);
        p.hierarchy.setup();
        const std::scoped_lock lock(guard);
        halocline_test::for_each_site(p.coarse_local, [&](std::int64_t site, const coordinate& x) {
            const auto place = static_cast<int>(lattice::lexicographic_index(x, p.coarse.global()));
            for (int link = -1; link < lattice::faces; ++link)
                for (int row = 0; row < 8; ++row)
                    for (int column = 0; column < 8; ++column)
                        all[{place, link, row, column}] = p.hierarchy.coarse().element(site, link, row, column);
        });
    });
    return all;
}

TEST(Hierarchy, DoesNotDependOnRanksNorLanes) {
    const auto reference = elements({1, 1, 1, 1});
    for (const coordinate& grid : {coordinate{1, 1, 1, 2}, coordinate{2, 1, 2, 1}, coordinate{1, 1, 1, 3}}) {
        const auto other = elements(grid);

        ASSERT_EQ(other.size(), reference.size());
        double worst = 0, largest = 0;
        for (const auto& [key, value] : reference) {
            worst = halocline_test::worse(worst, static_cast<double>(std::abs(value - other.at(key))));
            largest = std::max(largest, static_cast<double>(std::abs(value)));
        }
        EXPECT_LT(worst, 2e-5 * largest) << lattice::to_string(grid);
    }
}

TEST(Hierarchy, CycleAllocatesNothing) {
    // one rank, because the counter counts every thread, and job barriers allocate
    comm::run_threads(1, [](const comm::job& j) {
        problem p(j, {4, 4, 4, 8}, {1, 1, 1, 1}, {2, 2, 2, 2}, few_vectors(6));
        p.hierarchy.setup();
        lattice::field<float> x = p.fine_field(), b = p.fine_field();
        halocline_test::fill_random(b, p.local, p.cut.global(), 3);
        expect_ok(p.hierarchy.cycle(x, b));

        const std::uint64_t made = halocline_test::allocations_in([&] {
            for (int k = 0; k < 3; ++k) expect_ok(p.hierarchy.cycle(x, b));
        });

        EXPECT_EQ(made, 0U);
    });
}

// A rank without memory would leave the others waiting in an exchange.
TEST(CoarseOperator, IsDefinedWithoutAnAllocationBetweenExchanges) {
    comm::run_threads(1, [](const comm::job& j) {
        problem p(j, {4, 4, 4, 8}, {1, 1, 1, 1}, {2, 2, 2, 2}, few_vectors(6));
        p.hierarchy.setup();
        amg::coarse_operator& d = p.hierarchy.coarse();
        amg::coarse_operator::workspace work = d.make_workspace(p.hierarchy.interpolation());

        const std::uint64_t made =
            halocline_test::allocations_in([&] { expect_ok(d.define(p.hierarchy.interpolation(), p.d, work)); });

        EXPECT_EQ(made, 0U);
    });
}

// The odd sites alone would have a finite solution.
TEST(CoarseSolver, PassesOnANaNThatOnlyTheEvenDiagonalHolds) {
    for (const coordinate& grid : {coordinate{1, 1, 1, 1}, coordinate{2, 1, 1, 1}})
        comm::run_threads(static_cast<int>(lattice::volume(grid)), [&](const comm::job& j) {
            problem p(j, {4, 6, 6, 6}, grid, {2, 3, 3, 3}, few_vectors(6));
            p.hierarchy.setup();
            dirac::padded_links links = p.links;
            // infinite in fp32, and inside a block: it enters the diagonal by hops, and no site-local term without csw
            if (j.rank() == 0) links({0, 1, 1, 1}, 0)[0] = 1e200;
            dirac::wilson_clover<float> bad(j, p.cut, links, {.csw = 0}, p.d.order());
            expect_ok(define(p.hierarchy, bad));
            p.hierarchy.coarse().invert_odd();
            lattice::field<float> x = p.coarse_field();

            expect_ok(p.hierarchy.coarse_level()(x, p.coarse_field(1)));

            EXPECT_TRUE(std::ranges::any_of(x.values(), [](float v) { return std::isnan(v); }));
        });
}

/// Expects status::aborted from first_exchange(problem) on a rank whose only peer has left before.
template <class Exchange>
void expect_no_ghosts_are_needed(const coordinate& global, Exchange&& first_exchange) {
    comm::run_threads(2, [&](const comm::job& j) {
        problem p(j, global, {1, 1, 1, 2}, {2, 2, 2, 2}, few_vectors(6));
        if (j.rank() == 0) {
            EXPECT_EQ(first_exchange(p), comm::status::aborted);
        }
    });
}

// No exchange has finished yet, so there are no ghosts to be read.
TEST(CoarseOperator, TellsOfAPeerThatLeavesBeforeTheFirstExchange) {
    for (const coordinate& global : {coordinate{4, 4, 4, 8}, coordinate{4, 4, 4, 6}}) { // two parities; one
        expect_no_ghosts_are_needed(global, [](problem& p) {
            lattice::field<float> y = p.coarse_field();
            return p.hierarchy.coarse().apply(y, p.coarse_field(1));
        });
        expect_no_ghosts_are_needed(global, [](problem& p) { return define(p.hierarchy, p.d); });
    }
    expect_no_ghosts_are_needed({4, 4, 4, 8}, [](problem& p) {
        amg::coarse_operator& d = p.hierarchy.coarse();
        lattice::field<float> x(d.half_order(), d.components()), y(d.half_order(), d.components());
        return d.apply_schur(y, x);
    });
}

TEST(CoarseOperator, RefusesMoreSystemsThanOneSolveHas) {
    const comm::job j = comm::job::single();
    const auto coarse =
        amg::coarse_decomposition(lattice::decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1}), {2, 2, 2, 2});
    for (const int systems : {0, 17})
        EXPECT_EQ(halocline_test::refusal(
                      [&] { amg::coarse_operator(j, coarse, amg::coarse_site_order(coarse, 0), 4, systems); }),
                  "coarse_operator: " + std::to_string(systems) + " systems; must be from 1 to 16");
}

TEST(CoarseDecomposition, CutInsideABlockNamesTheGridsThatWouldDo) {
    const auto cut = lattice::decomposition::even({8, 8, 8, 8}, {1, 1, 1, 4});
    try {
        static_cast<void>(amg::coarse_decomposition(cut, {4, 4, 4, 4}));
        FAIL() << "a cut inside a block was accepted";
    } catch (const input_error& e) {
        EXPECT_NE(std::string(e.what()).find("1.1.1.4"), std::string::npos) << e.what();
        EXPECT_NE(std::string(e.what()).find("1.1.2.2"), std::string::npos) << e.what();
    }
}

/// Ghosts of a field that is written count as stale.
TEST(CoarseOperator, MarksWhatItWritesAndSoDoesTheInterpolation) {
    const comm::job j = comm::job::single();
    problem p(j, {4, 4, 4, 4}, {1, 1, 1, 1}, {2, 2, 2, 2}, few_vectors(2));
    amg::coarse_operator& d = p.hierarchy.coarse();
    amg::aggregation& interpolation = p.hierarchy.interpolation();
    lattice::field<float> fine = p.fine_field(), x = p.coarse_field(1), y = p.coarse_field(2),
                          half(d.half_order(), d.components()), other_half(d.half_order(), d.components());
    const auto marks = [](const lattice::field<float>& f, auto&& write) {
        const std::uint64_t before = f.version();
        write();
        return f.version() != before;
    };

    EXPECT_TRUE(marks(y, [&] { expect_ok(d.apply(y, x)); }));
    EXPECT_TRUE(marks(half, [&] { expect_ok(d.reduce(half, x)); }));
    EXPECT_TRUE(marks(other_half, [&] { expect_ok(d.apply_schur(other_half, half)); }));
    EXPECT_TRUE(marks(y, [&] { expect_ok(d.reconstruct(y, half, x)); }));
    EXPECT_TRUE(marks(fine, [&] { interpolation.prolong(fine, x); }));
    EXPECT_TRUE(marks(y, [&] { interpolation.restrict(y, fine); }));
    EXPECT_TRUE(marks(fine, [&] { interpolation.column(fine, 1, 0); }));
}

TEST(CoarseOperator, RefusesMatricesThatNoFieldHasComponentsFor) {
    const comm::job j = comm::job::single();
    const auto coarse = lattice::decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});

    EXPECT_EQ(
        halocline_test::refusal([&] { amg::coarse_operator(j, coarse, amg::coarse_site_order(coarse, 0), 6000); }),
        "too many test vectors: 6000 make the matrices of one coarse site 2592000000 numbers; at most 2147483647 "
        "can be stored");
}

} // namespace
