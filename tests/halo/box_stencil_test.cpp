// SPDX-License-Identifier: Apache-2.0
// Box stencils on ranks as threads, compared with plain loops over the whole lattice in one array: all neighbours of a
// box of up to 4 sites along each dimension, different widths at both ends, 1 and 3 components, odd and uneven extents
// from 1, open and periodic edges, both routes of corners, also without corners. All numbers are small integers in
// doubles, so every order of additions gives the same bits.
#include <halocline/halo/box_stencil.hpp>

#include "oracle.hpp"
#include "small_job.hpp"
#include "stencil_oracle.hpp"

#include <halocline_test/allocation_counter.hpp>

#include <algorithm>
#include <barrier>

using namespace halocline_test;
using halo::box_stencil;
using halo::box_stencil_options;
using halo::ghost_widths;
using lattice::boundary;
using lattice::box;
using lattice::decomposition;

namespace {

double hashed(const coordinate& x, int c, std::uint64_t below) {
    std::uint64_t h = mixed(static_cast<std::uint64_t>(c));
    for (int mu = 0; mu < dimensions; ++mu) h = mixed(h + static_cast<std::uint64_t>(x[mu] + 64));
    return static_cast<double>(h % below);
}
double first_value(const coordinate& x, int c) { return hashed(x, c, 1000); }
double outside_value(const coordinate& x, int c) { return hashed(x, c + 10, 1000); }
/// Hardly any two neighbours have the same weight, so that none is mistaken for another.
double weight(const coordinate& steps) { return 1 + hashed(steps, 20, 1000); }

/// All steps that the widths and the shape allow.
std::vector<coordinate> steps_within(const box_stencil_options& options) {
    const ghost_widths& w = options.widths;
    box reached;
    for (int mu = 0; mu < dimensions; ++mu) {
        reached.origin[mu] = -w.low[mu];
        reached.extents[mu] = w.low[mu] + 1 + w.high[mu];
    }
    std::vector<coordinate> all;
    for (std::int64_t i = 0; i < reached.volume(); ++i)
        if (options.shape == halo::shell::box || std::ranges::count(reached.site(i), 0) >= dimensions - 1)
            all.push_back(reached.site(i));
    return all;
}

/// Number of sites whose neighbours are all available before the exchange.
std::int64_t without_ghosts(const decomposition& cut, int rank, const box_stencil_options& options) {
    const box local = cut.local_box(rank), whole{{}, cut.global()};
    const auto reached = steps_within(options);
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < local.volume(); ++i)
        count += std::ranges::all_of(reached, [&](const coordinate& k) {
            for (int mu = 0; mu < dimensions; ++mu) { // a corner is a ghost if one of its dimensions makes it one
                coordinate y = local.site(i);
                y[mu] += k[mu];
                const bool beyond_open = options.boundaries[mu] == boundary::open && !whole.contains(y);
                if (!local.contains(y) && !beyond_open) return false;
            }
            return true;
        });
    return count;
}

constexpr int steps = 2;

/// Runs the stencil and compares bits; also checks that each site is visited once, and the interior needs no ghost.
template <int n>
void compare(const comm::job& j, const decomposition& cut, const box_stencil_options& options,
             const std::string& text) {
    box_stencil<double, n> s(j, cut, options);
    s.set_outside(outside_value);
    const box local = s.local_box();
    const auto reached = steps_within(options);
    for (std::int64_t i = 0; i < local.volume(); ++i)
        for (int c = 0; c < n; ++c) s.field(0).at(s.index(local.site(i)), c) = first_value(local.site(i), c);
    std::vector<int> visits(static_cast<std::size_t>(s.field(0).volume()));

    std::int64_t interior = 0;
    for (int step = 0; step < steps; ++step) {
        double* const next = s.field((step + 1) % 2).data();
        const auto kernel = [&](const auto& site) {
            for (int c = 0; c < n; ++c) {
                double sum = 0;
                for (const coordinate& k : reached) sum += weight(k) * site.at(k, (c + 1) % n);
                next[site.index() * n + c] = sum;
            }
            ++visits[site.index()];
        };
        s.start(step % 2);
        s.for_interior(kernel);
        interior = std::count(visits.begin(), visits.end(), step + 1);
        s.finish_or_throw();
        s.for_boundary(kernel);
    }

    EXPECT_EQ(std::count(visits.begin(), visits.end(), steps), local.volume()) << text;
    EXPECT_EQ(interior, without_ghosts(cut, j.rank(), options)) << text;
    const std::vector<double> right =
        by_definition<n>({reached, weight, first_value, outside_value}, cut.global(), options, steps);
    std::int64_t wrong = 0, not_visited = 0;
    for (std::int64_t i = 0; i < local.volume(); ++i) {
        const coordinate x = local.site(i);
        EXPECT_EQ(s.global_site(s.index(x)), x);
        not_visited += visits[s.index(x)] != steps;
        for (int c = 0; c < n; ++c)
            wrong += s.field(steps % 2).at(s.index(x), c) != right[box{{}, cut.global()}.index(x) * n + c];
    }
    EXPECT_EQ(not_visited, 0) << text;
    EXPECT_EQ(wrong, 0) << "rank " << j.rank() << " of " << j.ranks() << ": " << text;
}

/// A random cut over the ranks of j, mostly uneven, with boxes not thinner than the widths.
template <int n>
void compare_random_cases(const comm::job& j, unsigned seed, int count) {
    std::mt19937 g(seed);
    for (int i = 0; i < count; ++i) {
        const coordinate grid = random_rank_grid(g, j.ranks());
        coordinate global{};
        box_stencil_options options;
        options.shape = drawn(g, 0, 3) == 0 ? halo::shell::faces : halo::shell::box;
        options.corners = drawn(g, 0, 1) == 0 ? halo::corner_route::at_once : halo::corner_route::by_dimension;
        (void)draw_boundaries(g, options, n % 2 == 0);
        std::array<std::vector<int>, dimensions> cuts;
        for (int mu = 0; mu < dimensions; ++mu) {
            options.widths.low[mu] = drawn(g, 0, 2);
            options.widths.high[mu] = drawn(g, 0, options.widths.low[mu] == 2 ? 1 : 2);
            const int least = std::max({1, options.widths.low[mu], options.widths.high[mu]});
            cuts[mu].push_back(0);
            for (int p = 0; p < grid[mu]; ++p) cuts[mu].push_back(cuts[mu].back() + drawn(g, least, mu == 0 ? 6 : 3));
            global[mu] = cuts[mu].back();
        }
        const std::string text = "lattice " + lattice::to_string(global) + " grid " + lattice::to_string(grid) +
                                 " widths low " + lattice::to_string(options.widths.low) + " high " +
                                 lattice::to_string(options.widths.high) + boundaries_text(options);
        compare<n>(j, decomposition(global, cuts), options, text);
        if (testing::Test::HasFailure()) return j.abort("test failed");
    }
}

} // namespace

class BoxStencilOnRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, BoxStencilOnRanks, testing::Values(1, 2, 3, 4, 8));

TEST_P(BoxStencilOnRanks, EqualsPlainLoopsOverTheWholeLattice) {
    const auto seed = 2711U + static_cast<unsigned>(GetParam());
    std::printf("seed %u\n", seed);
    run(GetParam(), [&](const comm::job& j) {
        compare_random_cases<1>(j, seed, 40);
        compare_random_cases<2>(j, seed, 12);
        compare_random_cases<3>(j, seed, 12);
    });
}

TEST(BoxStencil, ReachesOnlyTheDimensionsThatALatticeHas) {
    const box_stencil_options plane{.widths = {{1, 1, 0, 0}, {1, 1, 0, 0}}};
    run(2, [&](const comm::job& j) {
        compare<1>(j, decomposition::even({9, 7, 1, 1}, {1, 2, 1, 1}), plane, "two dimensions");
    });
    run(1, [&](const comm::job& j) {
        compare<1>(j, decomposition::even({1, 1, 1, 1}, {1, 1, 1, 1}), {}, "one site");
        compare<2>(j, decomposition::even({3, 2, 1, 2}, {1, 1, 1, 1}), {.widths = {{}, {}}}, "no neighbours");
    });
}

TEST(BoxStencil, OutsideIsZeroUntilSetAndMayChangeBetweenSteps) {
    const auto cut = decomposition::even({3, 1, 1, 1}, {1, 1, 1, 1});
    const comm::job j = comm::job::single(small_job());
    box_stencil<double> s(j, cut, {.boundaries = {boundary::open}});
    const auto step = [&] {
        std::vector<double> sums(3);
        const auto sum_along_x = [&](const auto& n) {
            sums[s.global_site(n.index())[0]] = n.at({-1, 0, 0, 0}) + n.at({1, 0, 0, 0});
        };
        s.start(0);
        s.for_interior(sum_along_x);
        s.finish_or_throw();
        s.for_boundary(sum_along_x);
        return sums;
    };
    s.field(0).at(s.index({1, 0, 0, 0}), 0) = 10;

    EXPECT_EQ(step(), (std::vector<double>{10, 0, 10}));
    s.set_outside([](const coordinate& x, int) { return x[0] < 0 ? 1.0 : 2.0; });
    EXPECT_EQ(step(), (std::vector<double>{11, 0, 12}));
}

TEST(BoxStencil, TellsWhetherFinishWouldWait) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    run(2, [&](const comm::job& j) {
        box_stencil<double> s(j, cut);
        if (j.rank() == 1) {
            s.start(0);
            EXPECT_FALSE(s.test());
        }
        j.barrier(); // only now does rank 0 start
        if (j.rank() == 0) s.start(0);

        while (!s.test()) {
        }

        EXPECT_EQ(s.finish(), comm::status::ok);
    });
}

TEST(BoxStencil, RefusesToReadStaleGhosts) {
    const comm::job j = comm::job::single(small_job());
    box_stencil<double> s(j, decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1}), {.checks = check_level::normal});
    const auto nothing = [](const auto&) {};

    EXPECT_THROW(s.for_interior(nothing), error) << "of no field yet";
    EXPECT_THROW(s.for_boundary(nothing), error);
    for (int step = 0; step < 3; ++step) {
        s.start(step % 2);
        EXPECT_THROW(s.for_boundary(nothing), error);
        s.finish_or_throw();
        EXPECT_NO_THROW(s.for_boundary(nothing));
    }
    s.field(1).at(s.index({2, 2, 2, 2}), 0) = 1; // of another field
    EXPECT_NO_THROW(s.for_boundary(nothing));
    s.field(0).at(s.index({0, 1, 1, 1}), 0) = 1; // sent, and then written without the stencil's knowledge
    EXPECT_THROW(s.for_boundary(nothing), error);
}

// The field is named as the program knows it, which after a swap is not the plan's binding.
TEST(BoxStencil, NamesTheFieldWhoseGhostsAreStale) {
    const comm::job j = comm::job::single(small_job());
    box_stencil<double> s(j, decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1}),
                          {.name = "s", .checks = check_level::normal});
    s.field(0).swap(s.field(1));
    s.start(0);
    s.finish_or_throw();
    s.field(0).mark_written();

    EXPECT_EQ(refusal<error>([&] { s.for_boundary([](const auto&) {}); }),
              "stencil 's': stale ghosts of field 0: a field was marked as written since; call start(0) and finish()");
}

TEST(BoxStencil, TellsOfAKernelThatWritesTheFieldThatItReadsIfChecksAreNormal) {
    const comm::job j = comm::job::single(small_job());
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    for (const auto level : {check_level::light, check_level::normal}) {
        box_stencil<double> s(j, cut, {.name = "s", .checks = level});
        const auto writing = [&](int to) {
            return [&s, to](const auto& n) { s.field(to).at(n.index(), 0) = n.at({1, 0, 0, -1}) + 1; };
        };
        const auto told = [&](const coordinate& site) {
            return level == check_level::light ? "accepted"
                                               : "stencil 's': the kernel wrote the field that it reads, which is "
                                                 "being exchanged, at index " +
                                                     std::to_string(s.index(site)) + "; it must write another field";
        };

        s.start(0);
        EXPECT_EQ(refusal<error>([&] { s.for_interior(writing(1)); }), "accepted");
        EXPECT_EQ(refusal<error>([&] { s.for_interior(writing(0)); }), told({1, 1, 1, 1}));
        s.finish_or_throw();
        EXPECT_EQ(refusal<error>([&] { s.for_boundary(writing(1)); }), "accepted");
        EXPECT_EQ(refusal<error>([&] { s.for_boundary(writing(0)); }), told({0, 0, 0, 0}));
    }
}

TEST(BoxStencil, FieldsMayBeSwappedBetweenStepsAndNotReplaced) {
    const auto cut = decomposition::even({6, 4, 4, 6}, {1, 1, 1, 2});
    const auto stepped = [&](const comm::job& j, bool swaps) {
        box_stencil<double> s(j, cut, {.name = "s", .checks = check_level::normal});
        for (std::int64_t i = 0; i < s.field(0).volume(); ++i) {
            const coordinate x = s.global_site(i);
            if (s.local_box().contains(x)) s.field(0).at(i, 0) = first_value(x, 0);
        }
        const int steps = 5;
        for (int k = 0; k < steps; ++k) {
            const int from = swaps ? 0 : k % 2;
            auto& next = s.field(1 - from);
            const auto kernel = [&](const auto& n) { next.at(n.index(), 0) = n.here() + n.at({1, 0, 0, -1}) / 16; };
            if (!swaps) {
                s.start(from);
                s.for_interior(kernel);
                s.finish_or_throw();
                s.for_boundary(kernel);
                continue;
            }
            s.apply(from, kernel);
            s.field(0).swap(s.field(1));
            EXPECT_THROW(s.for_interior([](const auto&) {}), error) << "writes what is being exchanged";
            EXPECT_EQ(refusal<error>([&] { s.for_boundary(kernel); }),
                      "stencil 's': field 0 was swapped or replaced since start()");
        }
        std::vector<double> own;
        const auto& last = s.field(swaps ? 0 : steps % 2);
        for (std::int64_t i = 0; i < last.volume(); ++i)
            if (s.local_box().contains(s.global_site(i))) own.push_back(last.at(i, 0));
        s.field(0) = lattice::field<double>(s.field(0).shared_order(), 1);
        EXPECT_EQ(refusal([&] { s.start(0); }),
                  "stencil 's': field 0 was replaced: swap it with another one of the stencil, or copy values into it");
        return own;
    };

    run(2, [&](const comm::job& j) { EXPECT_EQ(stepped(j, true), stepped(j, false)); });
}

TEST(BoxStencil, OfABoxThatIsTooLargeOnOneRankIsRefusedOnAll) {
    const decomposition cut({2, 1, 1, 1 << 30}, {{{0, 2}, {0, 1}, {0, 1}, {0, 1, 1 << 30}}});
    for (const std::string& text : refusals(2, [&](const comm::job& j) { box_stencil<double>(j, cut); }))
        EXPECT_NE(text.find("sites"), std::string::npos) << text;
}

// A sum over the corners of a square around each site, of a value that 16 bits round to 1; with and without them.
TEST(BoxStencil, RoundsGhostsThatTravelIn16Bits) {
    const comm::job j = comm::job::single(small_job());
    constexpr float value = 1 + 0x1p-12F;
    const auto sums = [&](halo::message_format format) {
        box_stencil<float> s(j, decomposition::even({3, 3, 1, 1}, {1, 1, 1, 1}),
                             {.widths = {{1, 1, 0, 0}, {1, 1, 0, 0}}, .format = format});
        for (float& v : s.field(0).values()) v = value;
        const auto kernel = [&](const auto& n) {
            s.field(1).data()[n.index()] =
                n.at({-1, -1, 0, 0}) + n.at({1, -1, 0, 0}) + n.at({-1, 1, 0, 0}) + n.at({1, 1, 0, 0});
        };
        s.start(0);
        s.for_interior(kernel);
        s.finish_or_throw();
        s.for_boundary(kernel);
        std::vector<float> inner;
        for (int y = 0; y < 3; ++y)
            for (int x = 0; x < 3; ++x) inner.push_back(s.field(1).data()[s.index({x, y, 0, 0})]);
        return inner;
    };
    constexpr float corner = 3 + value, edge = 2 + 2 * value, middle = 4 * value;
    const std::vector<float> rounded{corner, edge, corner, edge, middle, edge, corner, edge, corner};

    EXPECT_EQ(sums(halo::message_format::as_stored), std::vector<float>(9, middle));
    EXPECT_EQ(sums(halo::message_format::half), rounded);
    EXPECT_EQ(sums(halo::message_format::bfloat16), rounded);
}

TEST(BoxStencil, RefusesWhatMakesNoStencil) {
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    const comm::job j = comm::job::single(small_job());
    const auto refused = [&](const box_stencil_options& options) {
        return refusal([&] { box_stencil<double>(j, cut, options); });
    };

    EXPECT_EQ(refused({.name = "s", .fields = 0}), "stencil 's': 0 fields: must be 1 or more");
    EXPECT_NE(refused({.name = "s", .phases = {1, {0, 1}, 1, 1}}).find("which are no pairs (re, im) to multiply by"),
              std::string::npos);
    EXPECT_NE(refused({.name = "s", .widths = {{5, 1, 1, 1}, {1, 1, 1, 1}}}).find("stencil 's': "), std::string::npos);
    EXPECT_THROW((box_stencil<double>(j, decomposition::even({4, 4, 4, 4}, {1, 1, 1, 2}))), input_error);
    box_stencil<double> s(j, cut, {.name = "s"});
    EXPECT_EQ(refusal([&] { s.start(2); }), "stencil 's': field 2: must be 0 to 1");
    EXPECT_THROW((void)s.field(-1), input_error);
}

TEST(BoxStencil, SaysThatItWasMovedFrom) {
    const comm::job j = comm::job::single(small_job());
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    box_stencil<double> s(j, cut, {.checks = check_level::off});
    const auto nothing = [](const auto&) {};
    s.start(0);
    s.finish_or_throw();
    const box_stencil<double> taken = std::move(s);

    EXPECT_NO_THROW(taken.for_interior(nothing));
    EXPECT_NO_THROW(taken.for_boundary(nothing));
    const std::string text =
        "a box_stencil is used after it was moved from: it can be assigned to or destroyed, nothing else";
    EXPECT_EQ(refusal([&] { (void)s.field(0); }), text);
    EXPECT_EQ(refusal([&] { (void)std::as_const(s).field(0); }), text);
    EXPECT_EQ(refusal([&] { s.set_outside(outside_value); }), text);
    EXPECT_EQ(refusal([&] { s.start(0); }), text);
    EXPECT_EQ(refusal([&] { s.for_interior(nothing); }), text);
    EXPECT_EQ(refusal([&] { s.for_boundary(nothing); }), text);
    s = box_stencil<double>(j, cut);
    s.start(1);
    EXPECT_NO_THROW(s.for_interior(nothing));
    EXPECT_NO_THROW(s.finish_or_throw());
}

TEST(BoxStencil, MakesNoAllocationInTheTimeLoop) {
    const auto cut = decomposition::even({8, 4, 4, 7}, {1, 1, 1, 2});
    std::barrier meet(2);

    run(2, [&](const comm::job& j) {
        box_stencil<float> s(j, cut, {.boundaries = {boundary::open, boundary::antiperiodic}, .phases = {1, 1, 1, -1}});
        const std::uint64_t made = allocations_in(meet, [&] {
            for (int step = 0; step < 100; ++step) {
                float* const next = s.field((step + 1) % 2).data();
                const auto kernel = [&](const auto& n) {
                    next[n.index()] = n.here() + n.at({1, 1, 1, 1}) + n.at({-1, 0, 1, 0});
                };
                s.start(step % 2);
                s.for_interior(kernel);
                s.finish_or_throw();
                s.for_boundary(kernel);
                s.set_outside([&](const coordinate&, int) { return 0.0F; });
            }
        });

        EXPECT_EQ(made, 0U);
    });
}
