// SPDX-License-Identifier: Apache-2.0
// Stencils on ranks as threads, compared with plain loops over the whole lattice in one array: radius 1 to 3, 1 to 3
// components, odd and uneven extents from 1, open and periodic edges. All numbers are small integers in doubles, so
// every order of additions gives the same bits.
#include <halocline/comm/exact_sum.hpp>
#include <halocline/halo/sequential.hpp>
#include <halocline/halo/stencil.hpp>

#include "oracle.hpp"
#include "small_job.hpp"
#include "stencil_oracle.hpp"

#include <halocline_test/allocation_counter.hpp>
#include <halocline_test/environment_variable.hpp>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <optional>

using namespace halocline_test;
using halo::star;
using halo::stencil;
using halo::stencil_options;
using lattice::boundary;
using lattice::box;
using lattice::decomposition;
using lattice::field;

namespace {

double first_value(const coordinate& x, int c) {
    std::uint64_t h = mixed(static_cast<std::uint64_t>(c));
    for (int mu = 0; mu < dimensions; ++mu) h = mixed(h + static_cast<std::uint64_t>(x[mu]));
    return static_cast<double>(h % 1000);
}
double outside_value(const coordinate& x, int c) { return 7.0 + x[0] + 3 * x[1] + 5 * x[2] + 11 * x[3] + 13 * c; }
/// A different weight for every neighbour, so that no two can be confused.
double weight(int mu, int k) { return 1 + 10 * mu + k; }

template <star Star>
linear_stencil definition() {
    std::vector<coordinate> reached{{}};
    for (int mu = 0; mu < dimensions; ++mu)
        for (int k = 1; k <= Star.radius; ++k)
            for (const int sign : {-1, 1}) reached.emplace_back()[mu] = sign * k;
    const auto weight_of = [](const coordinate& step) {
        for (int mu = 0; mu < dimensions; ++mu)
            if (step[mu] != 0) return weight(mu, step[mu]);
        return 1.0;
    };
    return {reached, weight_of, first_value, outside_value};
}

constexpr int steps = 3;

/// Runs the stencil and compares bits; also checks that each site is visited once, and the interior needs no ghost.
template <star Star>
void compare(const comm::job& j, const decomposition& cut, const stencil_options& options, const std::string& text) {
    constexpr int n = Star.components;
    stencil<double, Star> s(j, cut, options);
    s.set_outside(outside_value);
    field<double> u = s.make_field(), next = s.make_field();
    const box local = s.local_box();
    for (std::int64_t i = 0; i < u.volume(); ++i)
        for (int c = 0; c < n; ++c) u.at(i, c) = first_value(s.global_site(i), c);
    std::vector<int> visits(static_cast<std::size_t>(u.volume()));

    std::int64_t interior = 0;
    const auto kernel = [&](const auto& site) {
        for (int c = 0; c < n; ++c) {
            double sum = site.here((c + 1) % n);
            for (int mu = 0; mu < dimensions; ++mu)
                for (int k = 1; k <= Star.radius; ++k)
                    sum += weight(mu, -k) * site.at(mu, -k, (c + 1) % n) + weight(mu, k) * site.at(mu, k, (c + 1) % n);
            next.data()[site.index() * n + c] = sum;
        }
        ++visits[site.index()];
    };
    for (int step = 0; step < steps; ++step) {
        if (step == steps - 1) {
            s.apply(u, kernel);
        } else {
            s.start(u);
            s.for_interior(kernel);
            interior = std::count(visits.begin(), visits.end(), step + 1);
            s.finish_or_throw();
            s.for_boundary(kernel);
        }
        u.swap(next);
    }

    EXPECT_EQ(std::count(visits.begin(), visits.end(), steps), u.volume()) << text;
    std::int64_t without_ghosts = 1;
    for (int mu = 0; mu < dimensions; ++mu) {
        const double sign = options.boundaries[mu] == boundary::antiperiodic ? -1 : 1;
        const bool closed = cut.rank_grid()[mu] == 1 && options.boundaries[mu] != boundary::open &&
                            sign * options.phases[mu] == 1.0 && !options.self_exchange;
        without_ghosts *= closed ? local.extents[mu] : std::max(0, local.extents[mu] - 2 * Star.radius);
    }
    EXPECT_EQ(interior, without_ghosts) << text;
    const std::vector<double> right = by_definition<n>(definition<Star>(), cut.global(), options, steps);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < u.volume(); ++i)
        for (int c = 0; c < n; ++c)
            wrong += u.at(i, c) != right[lattice::lexicographic_index(s.global_site(i), cut.global()) * n + c];
    EXPECT_EQ(wrong, 0) << "rank " << j.rank() << " of " << j.ranks() << ": " << text;
}

/// A random cut over the ranks of j: extents from 1 (undivided) or the radius (divided) up, mostly uneven.
template <star Star>
void compare_random_cases(const comm::job& j, unsigned seed, int count) {
    std::mt19937 g(seed);
    for (int i = 0; i < count; ++i) {
        const coordinate grid = random_rank_grid(g, j.ranks());
        coordinate global{};
        stencil_options options;
        options.self_exchange = drawn(g, 0, 3) == 0;
        const bool twisted = draw_boundaries(g, options, Star.components % 2 == 0);
        std::array<std::vector<int>, dimensions> cuts;
        for (int mu = 0; mu < dimensions; ++mu) {
            const bool exchanged = grid[mu] > 1 || options.self_exchange || twisted;
            cuts[mu].push_back(0);
            for (int p = 0; p < grid[mu]; ++p)
                cuts[mu].push_back(cuts[mu].back() + drawn(g, exchanged ? Star.radius : 1, mu == 0 ? 9 : 5));
            global[mu] = cuts[mu].back();
        }
        const std::string text = "lattice " + lattice::to_string(global) + " grid " + lattice::to_string(grid) +
                                 boundaries_text(options) + (options.self_exchange ? " self-exchange" : "");
        compare<Star>(j, decomposition(global, cuts), options, text);
        if (testing::Test::HasFailure()) return j.abort("test failed");
    }
}

} // namespace

class StencilOnRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, StencilOnRanks, testing::Values(1, 2, 3, 4, 8));

TEST_P(StencilOnRanks, EqualsPlainLoopsOverTheWholeLattice) {
    const auto seed = 1822U + static_cast<unsigned>(GetParam());
    std::printf("seed %u\n", seed);
    run(GetParam(), [&](const comm::job& j) {
        compare_random_cases<star{}>(j, seed, 20);
        compare_random_cases<star{.radius = 2}>(j, seed, 20);
        compare_random_cases<star{.radius = 1, .components = 3}>(j, seed, 10);
        compare_random_cases<star{.radius = 3, .components = 2}>(j, seed, 5);
    });
}

TEST(Stencil, WorksOnExtentsOneAndTwo) {
    const std::array<boundary, dimensions> open{boundary::open, boundary::open, boundary::open, boundary::open};
    run(1, [&](const comm::job& j) {
        for (const coordinate& e :
             {coordinate{1, 1, 1, 1}, {2, 2, 2, 2}, {1, 2, 1, 2}, {5, 1, 1, 1}, {1, 1, 1, 5}, {2, 7, 1, 1}}) {
            const decomposition cut = decomposition::even(e, {1, 1, 1, 1});
            compare<star{}>(j, cut, {}, "periodic " + lattice::to_string(e));
            compare<star{.radius = 2}>(j, cut, {}, "periodic " + lattice::to_string(e));
            compare<star{.radius = 2}>(j, cut, {.boundaries = open}, "open " + lattice::to_string(e));
        }
    });
    run(2, [&](const comm::job& j) {
        compare<star{}>(j, decomposition::even({1, 1, 1, 2}, {1, 1, 1, 2}), {}, "one site each");
    });
}

TEST(Stencil, OutsideIsZeroUntilSetAndMayChangeBetweenSteps) {
    const auto cut = decomposition::even({3, 1, 1, 1}, {1, 1, 1, 1});
    stencil_options options;
    options.boundaries[0] = boundary::open;
    const comm::job j = comm::job::single(small_job());
    stencil<double> s(j, cut, options);
    field<double> u = s.make_field(), next = s.make_field();
    const auto sum_along_x = [&](const auto& n) { next.data()[n.index()] = n.at(0, -1) + n.at(0, 1); };
    const auto step = [&] {
        s.start(u);
        s.for_interior(sum_along_x);
        s.finish_or_throw();
        s.for_boundary(sum_along_x);
        return std::vector<double>(next.values().begin(), next.values().end());
    };
    u.values()[1] = 10;

    EXPECT_EQ(step(), (std::vector<double>{10, 0, 10}));
    s.set_outside([](const coordinate& x, int) { return x[0] < 0 ? 1.0 : 2.0; });
    EXPECT_EQ(step(), (std::vector<double>{11, 0, 12}));
}

TEST(Stencil, HasExactSumsThatDoNotDependOnTheCut) {
    const coordinate global{7, 6, 5, 8};
    struct sums {
        double exact = 0, plain = 0;
    };
    const auto of_products = [&](const coordinate& grid) {
        sums result;
        comm::run_threads(static_cast<int>(lattice::volume(grid)), [&](const comm::job& j) {
            stencil<double> s(j, decomposition::even(global, grid), {.name = "sums"});
            field<double> u = s.make_field();
            for (std::int64_t i = 0; i < u.volume(); ++i)
                u.values()[i] =
                    std::sin(1.0 + static_cast<double>(lattice::lexicographic_index(s.global_site(i), global)));
            comm::exact_sum total(j);
            double plain = 0;
            const auto add = halo::sequential([&](const auto& site) {
                const double product = site.here() * (site.at(0, 1) + site.at(3, -1));
                total.add(product);
                plain += product;
            });
            s.start(u);
            s.for_interior(add);
            s.finish_or_throw();
            s.for_boundary(add);
            const double exact = total.sum_or_throw();
            comm::global_sum(j, 1).sum_or_throw({&plain, 1});
            if (j.rank() == 0) result = {exact, plain};
        });
        return result;
    };
    const sums whole = of_products({1, 1, 1, 1});
    int plain_differs = 0;
    for (const coordinate& grid : {coordinate{2, 1, 1, 1}, {1, 1, 1, 3}, {1, 2, 1, 2}, {2, 1, 1, 4}}) {
        const sums cut = of_products(grid);
        EXPECT_EQ(cut.exact, whole.exact) << lattice::to_string(grid);
        plain_differs += cut.plain == whole.plain ? 0 : 1;
    }
    EXPECT_GT(plain_differs, 0) << "nothing is rounded here, so nothing was shown";
}

TEST(Stencil, TellsWhetherFinishWouldWait) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    run(2, [&](const comm::job& j) {
        stencil<double> s(j, cut);
        const field<double> u = s.make_field();
        if (j.rank() == 1) {
            s.start(u);
            EXPECT_FALSE(s.test());
        }
        j.barrier(); // only now does rank 0 start
        if (j.rank() == 0) s.start(u);

        while (!s.test()) {
        }

        EXPECT_EQ(s.finish(), comm::status::ok);
    });
}

TEST(Stencil, RefusesToReadStaleGhosts) {
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    const comm::job j = comm::job::single(small_job());
    stencil<double> s(j, cut, {.self_exchange = true});
    field<double> u = s.make_field();
    const auto nothing = [](const auto&) {};

    EXPECT_THROW(s.for_interior(nothing), error) << "of no field yet";
    EXPECT_THROW(s.for_boundary(nothing), error);
    for (int step = 0; step < 2; ++step) {
        s.start(u);
        EXPECT_THROW(s.for_boundary(nothing), error);
        s.finish_or_throw();
        EXPECT_NO_THROW(s.for_boundary(nothing));
    }
}

/// What for_boundary() throws if a face of u was written without the stencil's knowledge; "" if it doesn't.
std::string told_of_a_face_that_was_written(const comm::job& j, const stencil_options& options) {
    stencil<double> s(j, decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1}), options);
    field<double> u = s.make_field();
    const auto nothing = [](const auto&) {};
    s.start(u);
    s.finish_or_throw();
    EXPECT_NO_THROW(s.for_boundary(nothing));
    u.data()[0] = 1; // does not mark it
    try {
        s.for_boundary(nothing);
    } catch (const error& e) {
        return e.what();
    }
    return "";
}

TEST(Stencil, TellsOfAFieldThatWasWrittenSinceItsExchangeIfChecksAreNormalOrAbove) {
    const comm::job j = comm::job::single(small_job());
    const auto is_told = [&](const stencil_options& options) {
        const std::string text = told_of_a_face_that_was_written(j, options);
        EXPECT_TRUE(text.empty() || text.find("was written since") != std::string::npos) << text;
        return !text.empty();
    };
    for (const auto level : {check_level::off, check_level::light, check_level::normal, check_level::comm})
        for (const stencil_options& options :
             {stencil_options{.self_exchange = true, .checks = level}, {.phases = {1, 1, 1, -1}, .checks = level}})
            EXPECT_EQ(is_told(options), level >= check_level::normal);
    for (const char* const level : {"off", "light", "normal", "comm"}) {
        const environment_variable checks("HALOCLINE_CHECK", level);
        EXPECT_EQ(is_told({.self_exchange = true}), parse_check_level(level, "") >= check_level::normal) << level;
    }
    const environment_variable checks("HALOCLINE_CHECK", "some");
    EXPECT_EQ(refusal([&] { (void)is_told({.self_exchange = true}); }),
              "HALOCLINE_CHECK is 'some': it must be off, light, normal or comm");
}

// A step of -1 along an antiperiodic dimension, by hand: one rank without a message, with itself, and two ranks.
TEST(Stencil, ChangesTheSignBeyondAnAntiperiodicEdge) {
    const auto shifted = [](const comm::job& j, const decomposition& cut, bool self_exchange) {
        stencil<float> s(j, cut, {.boundaries = {boundary::antiperiodic}, .self_exchange = self_exchange});
        field<float> u = s.make_field(), next = s.make_field();
        for (std::int64_t i = 0; i < u.volume(); ++i) u.at(i, 0) = static_cast<float>(1 + s.global_site(i)[0]);
        const auto kernel = [&](const auto& n) { next.data()[n.index()] = 10 * n.at(0, -1) + n.at(0, 1); };
        s.start(u);
        s.for_interior(kernel);
        s.finish_or_throw();
        s.for_boundary(kernel);
        return std::vector<float>(next.values().begin(), next.values().end());
    };
    for (const bool self_exchange : {false, true})
        EXPECT_EQ(
            shifted(comm::job::single(small_job()), decomposition::even({4, 1, 1, 1}, {1, 1, 1, 1}), self_exchange),
            (std::vector<float>{-40 + 2, 10 + 3, 20 + 4, 30 - 1}));
    run(2, [&](const comm::job& j) {
        EXPECT_EQ(shifted(j, decomposition::even({4, 1, 1, 1}, {2, 1, 1, 1}), false),
                  j.rank() == 0 ? (std::vector<float>{-40 + 2, 10 + 3}) : (std::vector<float>{20 + 4, 30 - 1}));
    });
}

TEST(Stencil, RefusesPhasesThatDoNotFit) {
    const auto cut = decomposition::even({4, 1, 4, 4}, {1, 1, 1, 1});
    const comm::job j = comm::job::single(small_job());
    const stencil_options twisted{.name = "s", .phases = {1, 1, {0, 1}, 1}},
        signs{.name = "s", .phases = {1, -1, 1, 1}};
    const std::string wider =
        "halo 's': ghost width 2 behind y-low is wider than the local box of rank 0, 4.1.4.4 with 1 "
        "in y; make it 1 or less";

    EXPECT_EQ(refusal([&] { stencil<double>(j, cut, twisted); }),
              "stencil 's': phase (0, 1) in z: 1 components per site are no pairs (re, im)");
    EXPECT_EQ(refusal([&] { stencil<int>(j, cut, signs); }),
              "stencil 's': phase (-1, 0) in y: its fields are not of float or double");
    EXPECT_EQ(refusal([&] { stencil<double, star{.radius = 2}>(j, cut, signs); }), wider);
    const stencil_options antiperiodic{.name = "s", .boundaries = {{{}, lattice::boundary::antiperiodic}}};
    EXPECT_EQ(refusal([&] { stencil<double, star{.radius = 2}>(j, cut, antiperiodic); }), wider);
    EXPECT_EQ(refusal([&] { stencil<double>(j, cut, signs); }), "accepted");
    EXPECT_EQ(refusal([&] {
                  stencil<double>(j, cut, {.name = "s", .phases = {1, 1, HUGE_VAL, 1}});
              }),
              "stencil 's': phase (inf, 0) in z: must be finite");
}

TEST(Stencil, RefusesPhasesThatDifferBetweenRanks) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    const auto texts = refusals(2, [&](const comm::job& j) {
        stencil<double> s(j, cut, {.name = "twisted", .phases = {1, 1, 1, j.rank() == 0 ? 1.0 : -1.0}});
    });
    for (const std::string& text : texts)
        for (const char* const part : {"the phases and messages of stencil 'twisted'", "(1, 0) in t", "(-1, 0) in t"})
            EXPECT_NE(text.find(part), std::string::npos) << text;
}

/// A step of a sum over all neighbours with different weights, by a stencil of floats that starts from small integers.
std::vector<float> after_a_step(const comm::job& j, const decomposition& cut, const stencil_options& options) {
    constexpr star shape{.radius = 2, .components = 2};
    stencil<float, shape> s(j, cut, options);
    field<float> u = s.make_field(), next = s.make_field();
    for (std::int64_t i = 0; i < u.volume(); ++i)
        for (int c = 0; c < 2; ++c) u.at(i, c) = static_cast<float>(std::fmod(first_value(s.global_site(i), c), 200));
    const auto kernel = [&](const auto& n) {
        for (int c = 0; c < 2; ++c) {
            float sum = n.here(c);
            for (int mu = 0; mu < dimensions; ++mu)
                for (const int k : {-2, -1, 1, 2}) sum += static_cast<float>(weight(mu, k)) * n.at(mu, k, c);
            next.data()[2 * n.index() + c] = sum;
        }
    };
    s.start(u);
    s.for_interior(kernel);
    s.finish_or_throw();
    s.for_boundary(kernel);
    const bool is_rounded = options.format != halo::message_format::as_stored;
    EXPECT_EQ(s.halo_plan().options().bytes_per_site, is_rounded ? 4U : 8U);
    return {next.values().begin(), next.values().end()};
}

TEST(Stencil, SendsWhatFitsInto16BitsUnchanged) {
    for (const int ranks : {1, 2, 4})
        for (const auto format : {halo::message_format::half, halo::message_format::bfloat16})
            run(ranks, [&](const comm::job& j) {
                const auto cut = decomposition::chosen({6, 4, 4, 8}, ranks);
                stencil_options options{.boundaries = {boundary::open, boundary::periodic, boundary::antiperiodic},
                                        .phases = {1, {0, 1}, 1, 1},
                                        .self_exchange = true};
                const std::vector<float> whole = after_a_step(j, cut, options);
                options.format = format;
                options.scale = 4;
                EXPECT_EQ(after_a_step(j, cut, options), whole);
            });
}

// A sum along x of three sites, of which the first and the last need ghosts.
TEST(Stencil, RoundsGhostsThatTravelIn16Bits) {
    const comm::job j = comm::job::single(small_job());
    const auto sums = [&](float value, halo::message_format format, double scale,
                          stencil_options options = {.self_exchange = true}) {
        options.format = format;
        options.scale = scale;
        stencil<float> s(j, decomposition::even({3, 1, 1, 1}, {1, 1, 1, 1}), options);
        field<float> u = s.make_field(), next = s.make_field();
        for (float& v : u.values()) v = value;
        const auto kernel = [&](const auto& n) { next.data()[n.index()] = n.at(0, -1) + n.at(0, 1); };
        s.start(u);
        s.for_interior(kernel);
        s.finish_or_throw();
        s.for_boundary(kernel);
        return std::vector<float>(next.values().begin(), next.values().end());
    };
    const auto half = halo::message_format::half, bfloat16 = halo::message_format::bfloat16;
    constexpr float above_one = 1 + 0x1p-12F, tiny = 0x1.8p-24F;

    EXPECT_EQ(sums(above_one, half, 1), (std::vector<float>{1 + above_one, 2 * above_one, above_one + 1}));
    EXPECT_EQ(sums(above_one, bfloat16, 1), (std::vector<float>{1 + above_one, 2 * above_one, above_one + 1}));
    EXPECT_EQ(sums(tiny, half, 1), (std::vector<float>{0x1p-23F + tiny, 2 * tiny, tiny + 0x1p-23F}));
    EXPECT_EQ(sums(tiny, half, 0x1p12), (std::vector<float>{2 * tiny, 2 * tiny, 2 * tiny}));
    EXPECT_EQ(sums(above_one, half, 1, {.boundaries = {boundary::antiperiodic}}),
              (std::vector<float>{above_one - 1, 2 * above_one, above_one - 1}));
    EXPECT_EQ(sums(above_one, half, 1, {}), (std::vector<float>{2 * above_one, 2 * above_one, 2 * above_one}));
}

TEST(Stencil, TellsOfAFieldThatWasWrittenAlsoIfItsMessagesAreRounded) {
    const comm::job j = comm::job::single(small_job());
    for (const auto level : {check_level::light, check_level::normal})
        for (const bool marked : {true, false}) {
            stencil<float> s(
                j, decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1}),
                {.name = "s", .self_exchange = true, .format = halo::message_format::half, .checks = level});
            field<float> u = s.make_field();
            const auto nothing = [](const auto&) {};
            s.start(u);
            EXPECT_THROW(s.for_boundary(nothing), error);
            s.finish_or_throw();
            EXPECT_NO_THROW(s.for_boundary(nothing));
            if (marked)
                u.mark_written();
            else
                u.data()[0] = 1;
            const std::string why =
                marked ? "was marked as written since" : "was written since, without mark_written()";
            const std::string told = refusal<error>([&] { s.for_boundary(nothing); });
            EXPECT_NE(told.find(level == check_level::light ? "accepted" : why), std::string::npos) << told;
        }
}

TEST(Stencil, RefusesFormatsThatDoNotFit) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 1});
    const comm::job j = comm::job::single(small_job());
    stencil_options options{.name = "s", .format = halo::message_format::half};

    EXPECT_EQ(refusal([&] { stencil<double>(j, cut, options); }),
              "stencil 's': half messages are made of floats; its fields are of double");
    EXPECT_EQ(refusal([&] { stencil<int>(j, cut, options); }),
              "stencil 's': half messages are made of floats; its fields are not of float or double");
    EXPECT_EQ(refusal([&] { stencil<float>(j, cut, options); }), "accepted");
    options.scale = 0;
    EXPECT_NE(refusal([&] { stencil<float>(j, cut, options); }).find("scale"), std::string::npos);

    const auto texts = refusals(2, [&](const comm::job& two) {
        const auto format = two.rank() == 0 ? halo::message_format::half : halo::message_format::bfloat16;
        stencil<float> s(two, decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2}), {.name = "s", .format = format});
    });
    for (const std::string& text : texts)
        for (const char* const part : {"messages half of 1 * value", "messages bfloat16 of 1 * value"})
            EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Stencil, TellsOfAKernelThatWritesTheFieldThatItReadsIfChecksAreNormal) {
    const comm::job j = comm::job::single(small_job());
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    const auto writing = [](field<double>& to) {
        return [&to](const auto& n) { to.data()[n.index()] = n.at(0, 1) + n.at(3, -1) + 1; };
    };
    const auto text_at = [](int index) {
        const coordinate site = lattice::lexicographic_coordinate(index, {4, 4, 4, 4});
        return "stencil 's': the kernel wrote the field that it reads, which is being exchanged, at site " +
               lattice::to_string(site) + "; it must write another field";
    };
    for (const auto level : {check_level::light, check_level::normal})
        for (const bool alone : {false, true}) { // alone: every site is of the interior
            stencil<double> s(j, cut, {.name = "s", .self_exchange = !alone, .checks = level});
            field<double> u = s.make_field(), next = s.make_field();
            const auto apart = writing(next), in_place = writing(u);
            const auto told = [&](int index) { return level == check_level::light ? "accepted" : text_at(index); };

            s.start(u);
            EXPECT_EQ(refusal<error>([&] { s.for_interior(apart); }), "accepted");
            EXPECT_EQ(refusal<error>([&] { s.for_interior(in_place); }), told(alone ? 1 : 1 + 4 + 16 + 64));
            s.finish_or_throw();
            EXPECT_EQ(refusal<error>([&] { s.for_boundary(apart); }), "accepted");
            EXPECT_EQ(refusal<error>([&] { s.for_boundary(in_place); }), alone ? "accepted" : told(1));
        }
}

TEST(Stencil, RefusesFieldsOfAnotherTypeOnAnotherRank) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    const auto texts = refusals(2, [&](const comm::job& j) {
        if (j.rank() == 0)
            stencil<double>(j, cut, {.name = "s"});
        else
            stencil<std::int64_t>(j, cut, {.name = "s"});
    });
    for (const std::string& text : texts)
        for (const char* const part : {"'s', 8 bytes per site of float64", "8 bytes per site of int64"})
            EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Stencil, TellsOfAFieldThatWasSwappedTooEarly) {
    const comm::job j = comm::job::single(small_job());
    stencil<double> s(j, decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1}), {.name = "s", .checks = check_level::off});
    auto x = s.make_field(), y = s.make_field();
    const auto nothing = [](const auto&) {};

    s.start(x);
    s.finish_or_throw();
    x.swap(y);

    const std::string text = "stencil 's': the field was swapped or replaced since start()";
    EXPECT_EQ(refusal<error>([&] { s.for_interior(nothing); }), text);
    EXPECT_EQ(refusal<error>([&] { s.for_boundary(nothing); }), text);
}

TEST(Stencil, OfABoxThatIsTooLargeOnOneRankIsRefusedOnAll) {
    const decomposition cut({2, 1, 1, (1 << 30) + 1}, {{{0, 2}, {0, 1}, {0, 1}, {0, 1, (1 << 30) + 1}}});
    for (const std::string& text : refusals(2, [&](const comm::job& j) { stencil<double, halo::star{}>(j, cut); }))
        EXPECT_NE(text.find("sites"), std::string::npos) << text;
}

// What it sends is bounded by the box. What lies beyond an open edge is not: 3 x 2^30 sites don't fit into 32 bits.
TEST(Stencil, RefusesMoreSitesBeyondAnOpenEdgeThanItNumbers) {
    const auto j = comm::job::single(small_job());
    const auto cut = decomposition::even({1024, 1024, 1024, 1}, {1, 1, 1, 1});
    stencil_options open;
    open.boundaries[3] = boundary::open;

    EXPECT_EQ(
        refusal([&] { halo::star_edges(j, cut, open, {.radius = 3}, sizeof(float)); }),
        "stencil 'stencil': 3 layers in t of a local box of 1024.1024.1024.1 have more than 2147483647 sites; cut "
        "the lattice over more ranks");
    EXPECT_EQ(refusal([&] { halo::star_edges(j, cut, open, {.radius = 1}, sizeof(float)); }), "accepted");
    EXPECT_EQ(refusal([&] { halo::star_edges(j, cut, {}, {.radius = 3}, sizeof(float)); }), "accepted");
}

TEST(Stencil, RefusesForeignFields) {
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    const comm::job j = comm::job::single(small_job());
    stencil<double> s(j, cut);

    field<double> foreign(lattice::site_order::even_odd({{0, 0, 0, 0}, {4, 4, 4, 4}}), 1);
    const std::string text = "stencil 'stencil': a field for it is lexicographic, covers 4.4.4.4 and has 1 components "
                             "per site, as make_field() makes it";
    EXPECT_EQ(refusal([&] { s.start(foreign); }), text);
    EXPECT_EQ(refusal([&] { s.start(field<double>()); }), text);
    EXPECT_EQ(refusal([&] { s.start(field<double>({4, 4, 4, 4}, 2)); }), text);
    EXPECT_EQ(refusal([&] { s.start(field<double>({4, 4, 4, 5}, 1)); }), text);
    const std::string two = refusal([&] { stencil<double>(j, decomposition::even({4, 4, 4, 4}, {1, 1, 1, 2})); });
    EXPECT_NE(two.find("cut over 2 ranks (rank grid 1.1.1.2)"), std::string::npos) << two;
}

TEST(Stencil, TakesAnArrayOfTheProgramsOwn) {
    const decomposition cut({6, 4, 4, 7}, {{{0, 6}, {0, 4}, {0, 4}, {0, 3, 7}}});
    for (const auto format : {halo::message_format::as_stored, halo::message_format::bfloat16})
        run(2, [&](const comm::job& j) {
            const stencil_options options{.name = "s",
                                          .boundaries = {boundary::periodic, boundary::antiperiodic, boundary::open},
                                          .format = format,
                                          .checks = check_level::normal};
            stencil<float, star{.components = 2}> s(j, cut, options);
            field<float> u = s.make_field(), right = s.make_field();
            for (std::int64_t i = 0; i < u.volume(); ++i)
                for (int c = 0; c < 2; ++c) u.at(i, c) = static_cast<float>(first_value(s.global_site(i), c)) / 3;
            std::vector<float> own(u.values().begin(), u.values().end()), next(own.size());
            const auto kernel_to = [](float* to) {
                return [to](const auto& n) {
                    for (int c = 0; c < 2; ++c) {
                        float sum = n.here(c);
                        for (int mu = 0; mu < dimensions; ++mu)
                            sum += static_cast<float>(weight(mu, 1)) * n.at(mu, 1, 1 - c) - n.at(mu, -1, c);
                        to[2 * n.index() + c] = sum;
                    }
                };
            };
            s.apply(u, kernel_to(right.data()));
            s.apply(own.data(), kernel_to(next.data()));

            EXPECT_TRUE(std::ranges::equal(next, right.values()));
            const auto told = [&] { return refusal<error>([&] { s.for_boundary([](const auto&) {}); }); };
            EXPECT_EQ(told(), "accepted");
            EXPECT_EQ(
                refusal<error>([&] { s.for_interior(kernel_to(own.data())); }).find("stencil 's': the kernel wrote"),
                0U);
            s.start(own.data());
            s.finish_or_throw();
            own.back() += 1; // sent, at the upper end of t
            EXPECT_NE(told().find("was written since"), std::string::npos);
            s.start(own.data());
            s.finish_or_throw();
            own[2 * 6 * 4 * 4] += 1; // not sent, but multiplied beyond the edge in y
            EXPECT_NE(told().find("was written since"), std::string::npos);
            EXPECT_EQ(refusal([&] { s.start(static_cast<const float*>(nullptr)); }),
                      "stencil 's': start() of a null pointer");
        });
}

TEST(Stencil, MakesFieldsInTheMemoryThatItIsGiven) {
    const comm::job j = comm::job::single(small_job());
    const stencil<double> s(j, decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1}));
    const field<double> near = s.make_field(&j.memory()), apart = s.make_field();
    const auto in_slab = [&](const field<double>& x) {
        const auto* const at = reinterpret_cast<const std::byte*>(x.data());
        return at >= j.memory().base() && at < j.memory().base() + j.memory().bytes();
    };

    EXPECT_TRUE(in_slab(near));
    EXPECT_FALSE(in_slab(apart));
}

TEST(Stencil, SharesFieldsWithOthers) {
    const coordinate e{4, 4, 4, 4};
    run(2, [&](const comm::job& j) {
        const auto cut = decomposition::even(e, {1, 1, 1, 2});
        stencil<double> near(j, cut, {.name = "near", .checks = check_level::normal});
        stencil<double, star{.radius = 2}> wide(j, cut, {.name = "wide", .checks = check_level::normal});
        field<double> u(near.local_box().extents, 1), a = near.make_field(), b = wide.make_field();
        for (std::int64_t i = 0; i < u.volume(); ++i)
            u.at(i, 0) = static_cast<double>(lattice::lexicographic_index(near.global_site(i), e));
        near.apply(u, [&](const auto& n) { a.at(n.index(), 0) = n.at(3, 1); });
        wide.apply(u, [&](const auto& n) { b.at(n.index(), 0) = n.at(3, 2); });

        for (std::int64_t i = 0; i < u.volume(); ++i) {
            coordinate x = near.global_site(i), up = x;
            x[3] = (x[3] + 1) % e[3];
            up[3] = (up[3] + 2) % e[3];
            ASSERT_EQ(a.at(i, 0), static_cast<double>(lattice::lexicographic_index(x, e)));
            ASSERT_EQ(b.at(i, 0), static_cast<double>(lattice::lexicographic_index(up, e)));
        }
    });
}

TEST(Stencil, SaysThatItWasMovedFrom) {
    const comm::job j = comm::job::single(small_job());
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    stencil<double> s(j, cut, {.checks = check_level::off});
    field<double> u = s.make_field();
    const auto nothing = [](const auto&) {};
    s.start(u);
    s.finish_or_throw();
    const stencil<double> taken = std::move(s);

    EXPECT_NO_THROW(taken.for_interior(nothing));
    EXPECT_NO_THROW(taken.for_boundary(nothing));
    const std::string text =
        "a stencil is used after it was moved from: it can be assigned to or destroyed, nothing else";
    EXPECT_EQ(refusal([&] { (void)s.make_field(); }), text);
    EXPECT_EQ(refusal([&] { s.set_outside([](const coordinate&, int) { return 0.0; }); }), text);
    EXPECT_EQ(refusal([&] { s.start(u); }), text);
    EXPECT_EQ(refusal([&] { s.for_interior(nothing); }), text);
    EXPECT_EQ(refusal([&] { s.for_boundary(nothing); }), text);
    s = stencil<double>(j, cut);
    u = s.make_field();
    s.start(u);
    EXPECT_NO_THROW(s.for_interior(nothing));
    EXPECT_NO_THROW(s.finish_or_throw());
}

TEST(Stencil, MakesNoAllocationInTheTimeLoop) {
    const auto cut = decomposition::even({8, 4, 4, 7}, {1, 1, 1, 2});
    std::barrier meet(2);

    for (const auto format : {halo::message_format::as_stored, halo::message_format::half})
        run(2, [&](const comm::job& j) {
            const stencil_options options{
                .boundaries = {boundary::open, boundary::antiperiodic}, .phases = {1, 1, 1, -1}, .format = format};
            stencil<float, star{.radius = 2}> s(j, cut, options);
            field<float> u = s.make_field(), next = s.make_field();
            const auto kernel = [&](const auto& n) { next.data()[n.index()] = n.here() + n.at(3, 2) + n.at(0, -2); };
            const std::uint64_t made = allocations_in(meet, [&] {
                for (int step = 0; step < 100; ++step) {
                    s.start(u);
                    s.for_interior(kernel);
                    s.finish_or_throw();
                    s.for_boundary(kernel);
                    s.apply(std::as_const(u).data(), [](const auto&) {});
                    s.set_outside([&](const coordinate&, int) { return 0.0F; });
                    u.swap(next);
                }
            });

            EXPECT_EQ(made, 0U);
        });
}
