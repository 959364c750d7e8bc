// SPDX-License-Identifier: Apache-2.0
// Box stencils on ranks as threads, compared with plain loops over the whole lattice in one array: all neighbours of a
// box of up to 4 sites along each dimension, different widths at both ends, 1 and 3 components, odd and uneven extents
// from 1, open and periodic edges, both routes of corners, also without corners. All numbers are small integers in
// doubles, so every order of additions gives the same bits.
#include <halocline/halo/box_stencil.hpp>
#include <halocline/halo/stencil.hpp>

#include "oracle.hpp"
#include "small_job.hpp"
#include "stencil_oracle.hpp"

#include <halocline_test/allocation_counter.hpp>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <thread>

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
        compare<1>(j, decomposition::even({1, 1, 1, 1}, {1, 1, 1, 1}), {.widths = halo::ghost_widths{}}, "one site");
        compare<2>(j, decomposition::even({3, 2, 1, 2}, {1, 1, 1, 1}), {.widths = {{}, {}}}, "no neighbours");
    });
}

TEST(BoxStencil, HasNoGhostsByDefaultInDimensionsOfOneSite) {
    const auto cut = decomposition::even({6, 4, 1, 1}, {2, 1, 1, 1});
    run(2, [&](const comm::job& j) {
        const halo::box_stencil<double> s(j, cut, {.in_place = true});
        EXPECT_EQ(s.field(0).order().extents(), (coordinate{3 + 2, 4 + 2, 1, 1}));
        int interior = 0;
        halo::box_stencil<double> t(j, cut);
        t.start(0);
        t.for_interior(halo::sequential([&](const auto&) { ++interior; }));
        t.finish_or_throw();
        EXPECT_EQ(interior, 1 * 2);
    });
    run(1, [&](const comm::job& j) { // but where another site, or another value, lies beyond that one
        const halo::box_stencil<double> s(j, decomposition::even({6, 1, 1, 1}, {1, 1, 1, 1}),
                                          {.boundaries = {boundary::periodic, boundary::open, boundary::antiperiodic}});
        EXPECT_EQ(s.field(0).order().extents(), (coordinate{6 + 2, 1 + 2, 1 + 2, 1}));
    });
}

TEST(BoxStencil, ANeighbourAlongADimensionOfOneSiteIsTheSiteItself) {
    for (const coordinate& extents : {coordinate{1, 4, 1, 1}, coordinate{3, 4, 1, 1}}) // in x it is a ghost
        run(2, [&](const comm::job& j) {
            const auto cut = decomposition::even(extents, {1, 2, 1, 1});
            halo::box_stencil<double> s(j, cut, {.checks = check_level::normal});
            for (int y = 2 * j.rank(); y < 2 * j.rank() + 2; ++y)
                for (int x = 0; x < extents[0]; ++x) s.field(0).at(s.index({x, y, 0, 0}), 0) = 1 + 4 * x + y;
            s.apply(0, [&](const auto& n) {
                EXPECT_EQ(n.at({0, 0, -1, 1}), n.here());
                EXPECT_EQ(n.at(3, 1), n.here());
                EXPECT_EQ(n.at({1, 1, 1, 0}), n.at({1, 1, 0, 0}));
                EXPECT_EQ(n.at(0, 1) == n.here(), extents[0] == 1);
                EXPECT_NE(n.at(1, 1), n.here());
            });
        });
}

TEST(BoxStencil, CatchesAKernelThatReachesBeyondTheWidths) {
    const comm::job j = comm::job::single(small_job());
    halo::box_stencil<double> s(j, decomposition::even({6, 4, 1, 1}, {1, 1, 1, 1}),
                                {.widths = {{1, 0, 0, 0}, {2, 1, 0, 0}}, .checks = check_level::normal});
    const auto said = [&](const coordinate& steps) {
        s.start(0);
        const std::string text =
            refusal<error>([&] { s.for_interior(halo::sequential([&](const auto& n) { (void)n.at(steps); })); });
        s.finish_or_throw();
        return text;
    };
    EXPECT_EQ(said({2, 1, 1, -1}), "accepted");
    EXPECT_EQ(said({-2, 0, 0, 0}), "stencil 'stencil': the kernel reads a site -2.0.0.0 away, beyond the widths low "
                                   "1.0.0.0 high 2.1.0.0");
    EXPECT_NE(said({0, -1, 0, 0}), "accepted");
}

TEST(BoxStencil, CatchesAKernelThatReadsWhatNoFaceBrings) {
    const comm::job j = comm::job::single(small_job());
    halo::box_stencil<double> s(j, decomposition::even({6, 4, 1, 1}, {1, 1, 1, 1}),
                                {.shape = halo::shell::faces, .checks = check_level::normal});
    const auto said = [&](const coordinate& steps) {
        s.start(0);
        s.finish_or_throw();
        return refusal<error>([&] { s.for_boundary(halo::sequential([&](const auto& n) { (void)n.at(steps); })); });
    };
    EXPECT_EQ(said({0, 1, 0, 0}), "accepted");
    EXPECT_EQ(said({1, 0, 1, 1}), "accepted"); // z and t have one site, without ghosts
    EXPECT_EQ(said({1, -1, 0, 0}),
              "stencil 'stencil': the kernel reads a site 1.-1.0.0 away, along several dimensions: "
              "with shape faces no exchange brings it; shell::box has such sites");
}

TEST(BoxStencil, CatchesAKernelThatReadsWhatIsUpdatedInPlace) {
    const comm::job j = comm::job::single(small_job());
    halo::box_stencil<double> s(j, decomposition::even({6, 4, 1, 4}, {1, 1, 1, 1}),
                                {.in_place = true, .checks = check_level::normal});
    const auto said = [&](const coordinate& steps, int field) {
        s.start_in_place(0, 1);
        const auto kernel = halo::sequential([&](const auto& n) { (void)(n.at(steps) + n.of(field).at(steps)); });
        const std::string text = refusal<error>([&] { s.for_interior(kernel); });
        s.finish_or_throw();
        return text;
    };
    EXPECT_EQ(said({0, 0, 0, 0}, 0), "accepted");
    EXPECT_EQ(said({0, 1, 1, 0}, 0), "accepted");
    EXPECT_EQ(said({1, -1, 0, 1}, 0), "accepted");
    EXPECT_EQ(said({1, 1, 0, 0}, 0),
              "stencil 'stencil': the kernel reads a site 1.1.0.0 away, an even number of steps: in "
              "place that is a site that is updated, too");
    s.start(1);
    s.finish_or_throw();
    s.start_in_place(0, 1); // another field is not updated
    EXPECT_EQ(refusal<error>([&] { s.for_interior([](const auto& n) {
                                       (void)n.of(1).at({1, 1, 0, 0});
                                   }); }),
              "accepted");
    s.finish_or_throw();
}

TEST(BoxStencil, CatchesAFieldOfASetThatWasSwappedTooEarly) {
    const comm::job j = comm::job::single(small_job());
    halo::box_stencil<double> s(j, decomposition::even({6, 4, 1, 1}, {1, 1, 1, 1}),
                                {.fields = 4, .together = {{0, 1}}});
    const auto reads = [](const auto& n) { (void)n.of(1).here(); };
    s.start({0, 1});
    s.field(2).swap(s.field(3)); // not started
    s.for_interior(reads);
    s.field(1).swap(s.field(2));
    EXPECT_EQ(refusal<error>([&] { s.for_interior(reads); }),
              "stencil 'stencil': field 1 was swapped or replaced since start()");
    s.finish_or_throw();
    EXPECT_EQ(refusal<error>([&] { s.for_boundary(reads); }),
              "stencil 'stencil': field 1 was swapped or replaced since start()");
    s.field(1).swap(s.field(2));
    s.for_boundary(reads);
}

TEST(BoxStencil, RunsTheKernelOfAStar) {
    const decomposition cut({7, 5, 4, 6}, {{{0, 7}, {0, 3, 5}, {0, 4}, {0, 2, 6}}});
    run(4, [&](const comm::job& j) {
        constexpr halo::star shape{.radius = 2, .components = 2};
        const std::array<boundary, dimensions> edges{boundary::periodic, boundary::open, boundary::antiperiodic};
        halo::stencil<double, shape> star(j, cut, {.boundaries = edges});
        box_stencil<double, 2> s(
            j, cut, {.widths = {{2, 2, 2, 2}, {2, 2, 2, 2}}, .boundaries = edges, .shape = halo::shell::faces});
        star.set_outside(outside_value);
        s.set_outside(outside_value);
        auto u = star.make_field(), next = star.make_field();
        const box local = s.local_box();
        for (std::int64_t i = 0; i < local.volume(); ++i)
            for (int c = 0; c < 2; ++c)
                u.at(i, c) = s.field(0).at(s.index(local.site(i)), c) = first_value(local.site(i), c);
        const auto kernel_to = [](double* to) {
            return [to](const auto& n) {
                for (int c = 0; c < 2; ++c) {
                    double sum = n.here(c);
                    for (int mu = 0; mu < dimensions; ++mu)
                        for (const int k : {-2, -1, 1, 2}) sum += (10 * mu + k) * n.at(mu, k, 1 - c);
                    to[2 * n.index() + c] = sum + 100 * n.at(3, 1);
                }
            };
        };
        star.apply(u, kernel_to(next.data()));
        s.apply(0, kernel_to(s.field(1).data()));

        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < local.volume(); ++i)
            for (int c = 0; c < 2; ++c) wrong += s.field(1).at(s.index(local.site(i)), c) != next.at(i, c);
        EXPECT_EQ(wrong, 0);
        s.apply(0, [](const auto& n) { // steps in braces are no dimension
            EXPECT_EQ(n.at({}, 1), n.here(1));
            EXPECT_EQ(n.at({1}, 0), n.at(0, 1));
        });
    });
}

/// Component c of field f at any coordinate, also beyond the edges of the lattice.
double value_of_field(int f, const coordinate& x, int c, const coordinate& global,
                      const std::array<boundary, dimensions>& edges) {
    coordinate site = x;
    double sign = 1;
    bool outside = false;
    for (int mu = 0; mu < dimensions; ++mu) {
        const bool beyond = x[mu] < 0 || x[mu] >= global[mu];
        outside = outside || (beyond && edges[mu] == boundary::open);
        if (!beyond || edges[mu] == boundary::open) continue;
        site[mu] = (x[mu] + global[mu]) % global[mu];
        if (edges[mu] == boundary::antiperiodic) sign = -sign;
    }
    return sign * (outside ? outside_value(site, c) : first_value(site, 2 * f + c));
}

/// Fills the owned sites of fields [0, count) by global coordinate, and what lies beyond open edges.
template <class Stencil>
void fill_fields(Stencil& s, int count) {
    s.set_outside(outside_value);
    for (int f = 0; f < count; ++f)
        for (std::int64_t i = 0; i < s.local_box().volume(); ++i)
            for (int c = 0; c < 2; ++c) {
                const coordinate x = s.local_box().site(i);
                s.field(f).at(s.index(x), c) = first_value(x, 2 * f + c);
            }
}

/// Another weight for each neighbour in each field.
double weight_in(int f, const coordinate& steps) { return weight(steps) + 1001 * f; }

TEST(BoxStencil, ReadsNeighboursInSeveralFields) {
    const decomposition cut({7, 5, 2, 6}, {{{0, 7}, {0, 3, 5}, {0, 2}, {0, 2, 6}}});
    for (const halo::shell shape : {halo::shell::box, halo::shell::faces})
        for (const halo::corner_route corners : {halo::corner_route::at_once, halo::corner_route::by_dimension})
            run(4, [&](const comm::job& j) {
                const box_stencil_options options{
                    .fields = 4,
                    .together = {{2, 0}, {0, 1, 2}, {3, 2}},
                    .widths = {{1, 1, 0, 1}, {2, 1, 1, 1}},
                    .boundaries = {boundary::periodic, boundary::open, boundary::periodic, boundary::antiperiodic},
                    .shape = shape,
                    .corners = corners,
                    .checks = check_level::normal};
                box_stencil<double, 2> s(j, cut, options);
                fill_fields(s, 3);
                const auto reached = steps_within(options);
                const auto wrong_in = [&](std::initializer_list<int> read) {
                    std::int64_t wrong = 0;
                    for (std::int64_t i = 0; i < s.local_box().volume(); ++i)
                        for (int c = 0; c < 2; ++c) {
                            const coordinate x = s.local_box().site(i);
                            double sum = 0;
                            for (const int f : read)
                                for (const coordinate& k : reached) {
                                    coordinate y = x;
                                    for (int mu = 0; mu < dimensions; ++mu) y[mu] += k[mu];
                                    sum +=
                                        weight_in(f, k) * value_of_field(f, y, 1 - c, cut.global(), options.boundaries);
                                }
                            wrong += s.field(3).at(s.index(x), c) != sum;
                        }
                    std::ranges::fill(s.field(3).values(), 0);
                    return wrong;
                };
                const auto kernel_of = [&](std::initializer_list<int> read) {
                    return [&, read, to = s.field(3).data()](const auto& n) {
                        for (int c = 0; c < 2; ++c) {
                            double sum = 0;
                            for (const int f : read) {
                                const auto site = n.of(f);
                                const double* const values = s.field(f).data();
                                for (const coordinate& k : reached) {
                                    const double value = site.at(k, 1 - c);
                                    sum += weight_in(f, k) * value;
                                    EXPECT_EQ(value, values[2 * n.index(k) + 1 - c]);
                                    EXPECT_EQ(site.index(k), n.index(k));
                                }
                                EXPECT_EQ(site.here(c), values[2 * n.index() + c]);
                                EXPECT_EQ(site.at(0, 1, c), site.at({1, 0, 0, 0}, c));
                            }
                            to[2 * n.index() + c] = sum;
                        }
                    };
                };

                s.apply({0, 1, 2}, kernel_of({0, 1, 2}));
                EXPECT_EQ(wrong_in({0, 1, 2}), 0);
                s.apply({0, 2}, kernel_of({2, 0}));
                EXPECT_EQ(wrong_in({2, 0}), 0);
                s.apply(1, kernel_of({1, 2})); // 2 is fresh, from before
                EXPECT_EQ(wrong_in({1, 2}), 0);
                EXPECT_EQ(s.halo_plan(3).epoch(), 1U);
                EXPECT_EQ(s.halo_plan(2).epoch(), 1U);
                EXPECT_EQ(s.halo_plan().epoch(), 1U);
                const auto messages = [](const halo::shell_plan& plan) {
                    std::uint64_t sum = 0;
                    for (const auto& counts : plan.statistics().by_transport) sum += counts.messages;
                    return sum;
                };
                EXPECT_EQ(messages(s.halo_plan(3)), messages(s.halo_plan())) << "several fields in each message";
                if (testing::Test::HasFailure()) j.abort("test failed");
            });
}

TEST(BoxStencil, CatchesStaleGhostsInAnyOfSeveralFields) {
    const comm::job j = comm::job::single(small_job());
    box_stencil<double> s(j, decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1}),
                          {.name = "s", .fields = 4, .together = {{0, 1}}, .checks = check_level::normal});
    const auto reads = [](int f) { return [f](const auto& n) { (void)n.of(f).at({1, 0, 0, 0}); }; };
    const auto told = [&](auto&& kernel) { return refusal<error>([&] { s.for_boundary(kernel); }); };
    const auto start = [&](std::initializer_list<int> fields) {
        s.start(fields);
        s.finish_or_throw();
    };
    const std::int64_t sent = s.index({0, 1, 1, 1});

    start({0, 1});
    EXPECT_EQ(told(reads(0)), "accepted");
    EXPECT_EQ(told(reads(1)), "accepted");
    EXPECT_EQ(told([](const auto& n) { (void)n.of(2).here(); }), "accepted");
    EXPECT_EQ(told(reads(2)),
              "stencil 's': the kernel reads neighbours in field 2, whose ghosts are stale: no finished "
              "exchange filled them; exchange it first, start(2) and finish(), or together with the "
              "others");
    EXPECT_EQ(refusal<error>([&] { s.for_interior(reads(2)); }), "accepted") << "needs no ghosts";
    EXPECT_EQ(told([](const auto& n) { (void)n.of(4).here(); }), "stencil 's': field 4: must be 0 to 3");
    s.field(1).at(sent, 0) = 1;
    EXPECT_EQ(told(reads(0)), "stencil 's': stale ghosts of fields {0, 1}: a field was written since, without "
                              "mark_written(); call start({0, 1}) and finish()");
    start({2});
    EXPECT_EQ(told(reads(0)), "accepted") << "from before, and not written since";
    EXPECT_NE(told(reads(1)).find("a field was written since"), std::string::npos);
    s.field(0).mark_written();
    EXPECT_NE(told(reads(0)).find("a field was marked as written since"), std::string::npos);
    start({0});
    EXPECT_EQ(told(reads(0)), "accepted");
    EXPECT_NE(told(reads(1)).find("a field was written since"), std::string::npos);
    start({1, 0});
    start({2});
    EXPECT_EQ(told(reads(1)), "accepted");
    s.field(1).at(s.index({1, 1, 1, 1}) - 2, 0) = 1; // a ghost
    EXPECT_NE(told(reads(1)).find("ghosts were written since"), std::string::npos);
    start({0, 1});
    EXPECT_EQ(told([&](const auto& n) { s.field(1).at(n.index(), 0) = 2; }),
              "stencil 's': the kernel wrote one of the fields that it reads, which are being exchanged, at site "
              "0.0.0.0; it must write another field");
}

TEST(BoxStencil, SendsSetsOfFieldsThatWereSwapped) {
    const auto cut = decomposition::even({6, 4, 1, 8}, {1, 1, 1, 2});
    run(2, [&](const comm::job& j) {
        box_stencil<double, 2> s(j, cut,
                                 {.name = "s",
                                  .fields = 3,
                                  .together = {{0, 1}, {1, 2}},
                                  .widths = {{1, 1, 0, 1}, {1, 1, 0, 1}},
                                  .checks = check_level::normal});
        fill_fields(s, 2);
        const auto kernel = [&](const auto& n) { // of the first field, whichever memory it has
            for (int c = 0; c < 2; ++c)
                s.field(2).at(n.index(), c) = n.at({1, 0, 0, 1}, c) - n.of(1).at({-1, 1, 0, -1}, c);
        };
        for (int step = 0; step < 3; ++step) {
            s.apply({0, 1}, kernel);
            std::int64_t wrong = 0;
            for (std::int64_t i = 0; i < s.local_box().volume() && step == 0; ++i) {
                const coordinate x = s.local_box().site(i);
                coordinate up = x, down = x;
                for (const int mu : {0, 3}) {
                    up[mu] = (x[mu] + 1) % cut.global()[mu];
                    down[mu] = (x[mu] + cut.global()[mu] - 1) % cut.global()[mu];
                }
                down[1] = (x[1] + 1) % cut.global()[1];
                wrong += s.field(2).at(s.index(x), 0) != first_value(up, 0) - first_value(down, 2);
            }
            EXPECT_EQ(wrong, 0);
            s.field(0).swap(s.field(2));
        }
        EXPECT_EQ(s.halo_plan(2).epoch(), 3U);
        s.field(0).swap(s.field(2));
        s.field(0).swap(s.field(1));
        s.field(1).swap(s.field(2));
        EXPECT_EQ(refusal([&] { s.start({0, 2}); }), "accepted");
        s.finish_or_throw();
        const std::string text = refusal([&] { s.start({0, 1, 2}); });
        EXPECT_EQ(text, "stencil 's': start({0, 1, 2}): box_stencil_options::together has no such set");
        EXPECT_EQ(refusal([&] { s.start({}); }),
                  "stencil 's': start({}): box_stencil_options::together has no such set");
        EXPECT_EQ(refusal([&] {
                      s.start({0, 0});
                  }),
                  "stencil 's': start({0, 0}): box_stencil_options::together has no such set");
    });
}

/// Sweeps of Gauss-Seidel, even sites first, over the lattice in one array: u = c - (sum of neighbours) / 8.
std::vector<double> swept_by_definition(const decomposition& cut, const std::array<boundary, dimensions>& edges,
                                        int sweeps) {
    const box whole{{}, cut.global()};
    std::vector<double> u;
    for (std::int64_t i = 0; i < whole.volume(); ++i) u.push_back(first_value(whole.site(i), 0));
    for (int half = 0; half < 2 * sweeps; ++half)
        for (std::int64_t i = 0; i < whole.volume(); ++i) {
            const coordinate x = whole.site(i);
            if (lattice::parity(x) != half % 2) continue;
            double sum = 0;
            for (int mu = 0; mu < dimensions; ++mu)
                for (const int k : {-1, 1}) {
                    coordinate y = x;
                    y[mu] += k;
                    if (whole.contains(y)) {
                        sum += u[whole.index(y)];
                    } else if (edges[mu] == boundary::open) {
                        sum += outside_value(y, 0);
                    } else {
                        y[mu] = (y[mu] + whole.extents[mu]) % whole.extents[mu];
                        sum += edges[mu] == boundary::antiperiodic ? -u[whole.index(y)] : u[whole.index(y)];
                    }
                }
            u[i] = first_value(x, 2) - sum / 8;
        }
    return u;
}

class BoxStencilInPlace : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, BoxStencilInPlace, testing::Values(1, 2, 4));

TEST_P(BoxStencilInPlace, UpdatesOneParityAfterTheOther) {
    const int ranks = GetParam();
    const decomposition cut = ranks == 1   ? decomposition::even({6, 5, 4, 8}, {1, 1, 1, 1})
                              : ranks == 2 ? decomposition({6, 5, 4, 8}, {{{0, 6}, {0, 5}, {0, 4}, {0, 3, 8}}})
                                           : decomposition({6, 5, 4, 8}, {{{0, 1, 6}, {0, 2, 5}, {0, 4}, {0, 8}}});
    const std::array<boundary, dimensions> edges{boundary::periodic, boundary::open, boundary::periodic,
                                                 boundary::antiperiodic};
    for (const int members : {1, 3})
        run(ranks, [&](const comm::job& j) {
            box_stencil<double> s(j, cut,
                                  {.name = "s",
                                   .in_place = true,
                                   .boundaries = edges,
                                   .shape = halo::shell::faces,
                                   .checks = check_level::normal});
            s.set_outside(outside_value);
            const box local = s.local_box();
            for (std::int64_t i = 0; i < local.volume(); ++i) {
                s.field(0).at(s.index(local.site(i)), 0) = first_value(local.site(i), 0);
                s.field(1).at(s.index(local.site(i)), 0) = first_value(local.site(i), 2);
            }
            constexpr int sweeps = 3;
            std::vector<std::atomic<int>> visits(static_cast<std::size_t>(s.field(0).volume()));
            std::barrier together(members);
            const auto member = [&](halo::team me) {
                const auto relax = [&](const auto& n) {
                    double sum = 0;
                    for (int mu = 0; mu < dimensions; ++mu) sum += n.at(mu, -1), sum += n.at(mu, 1);
                    s.field(0).data()[n.index()] = n.of(1).here() - sum / 8;
                    ++visits[static_cast<std::size_t>(n.index())];
                };
                for (int half = 0; half < 2 * sweeps; ++half) {
                    s.start_in_place(0, half % 2, me);
                    s.for_interior(relax, me);
                    EXPECT_EQ(s.finish(me), comm::status::ok);
                    s.for_boundary(relax, me);
                    together.arrive_and_wait();
                }
            };
            std::vector<std::jthread> others;
            for (int i = 1; i < members; ++i) others.emplace_back([&, i] { member({i, members}); });
            member({0, members});
            others.clear();

            const std::vector<double> right = swept_by_definition(cut, edges, sweeps);
            std::int64_t wrong = 0;
            for (std::int64_t i = 0; i < local.volume(); ++i) {
                const std::int64_t at = s.index(local.site(i));
                wrong += s.field(0).at(at, 0) != right[box{{}, cut.global()}.index(local.site(i))];
                wrong += visits[static_cast<std::size_t>(at)] != sweeps;
            }
            EXPECT_EQ(wrong, 0);
            EXPECT_EQ(s.halo_plan_in_place(1).epoch(), static_cast<std::uint64_t>(sweeps));
            EXPECT_EQ(refusal([&] { (void)s.halo_plan_in_place(2); }),
                      "stencil 's': no plan updates sites of parity 2 in place");
            s.start_in_place(0, 0);
            s.finish_or_throw();
            const coordinate odd =
                lattice::parity(local.origin) == 1
                    ? local.origin
                    : coordinate{local.origin[0], local.origin[1], local.origin[2] + 1, local.origin[3]};
            s.field(0).at(s.index(odd), 0) += 1; // is read
            EXPECT_EQ(refusal<error>([&] { s.for_boundary([](const auto&) {}); }),
                      "stencil 's': stale ghosts of field 0: a field was written since, without mark_written(); call "
                      "start_in_place(0, 0) and finish()");
        });
}

TEST(BoxStencil, RefusesUpdatesInPlaceWhereItCantMakeThem) {
    const comm::job j = comm::job::single(small_job());
    const auto cut = decomposition::even({4, 3, 1, 4}, {1, 1, 1, 1});
    box_stencil_options options{.name = "s", .in_place = true, .widths = {{1, 1, 0, 1}, {1, 1, 0, 1}}};

    EXPECT_EQ(
        refusal([&] { box_stencil<double>(j, cut, options); }),
        "stencil 's': in place around y of the lattice 4.3.1.4: parities don't alternate across the edge of an odd "
        "extent; must be even, open or of width 0");
    options.boundaries[1] = boundary::open;
    box_stencil<double> s(j, cut, options), without(j, cut, {.name = "w"});
    EXPECT_EQ(refusal([&] { s.start_in_place(0, 2); }), "stencil 's': start_in_place() of parity 2: must be 0 or 1");
    EXPECT_EQ(refusal([&] { s.start_in_place(0, -1); }), "stencil 's': start_in_place() of parity -1: must be 0 or 1");
    EXPECT_EQ(refusal([&] { s.start_in_place(2, 0); }), "stencil 's': field 2: must be 0 to 1");
    EXPECT_EQ(refusal([&] { without.start_in_place(0, 0); }),
              "stencil 'w': start_in_place() of parity 0: made without box_stencil_options::in_place");
}

TEST(BoxStencil, TellsOfAStartBeforeFinishAlsoOfOtherFields) {
    const comm::job j = comm::job::single(small_job());
    box_stencil<double> s(j, decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1}), {.name = "s", .together = {{0, 1}}});
    s.start(0);
    s.start({0, 1});

    EXPECT_EQ(s.finish(), comm::status::misused);
    EXPECT_EQ(refusal([&] { s.finish_or_throw(); }), "halo 's': start() before finish() of the last exchange");
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
                                                 "being exchanged, at site " +
                                                     lattice::to_string(site) + "; it must write another field";
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
    EXPECT_EQ(refused({.name = "s", .together = {{0, 2}}}), "stencil 's': together: field 2: must be 0 to 1");
    EXPECT_EQ(refused({.name = "s", .together = {{0, 1}, {-1, 0}}}), "stencil 's': together: field -1: must be 0 to 1");
    EXPECT_EQ(refused({.name = "s", .together = {{1, 1}}}), "stencil 's': together: field 1 twice in a set");
    EXPECT_EQ(refused({.name = "s", .together = {{1}}}), "stencil 's': together: a set of 1: must be 2 or more fields");
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
    EXPECT_EQ(refusal([&] { s.finish_or_throw(); }), text);
    EXPECT_EQ(refusal([&] { (void)s.halo_plan(); }), text);
    s = box_stencil<double>(j, cut);
    s.start(1);
    EXPECT_NO_THROW(s.for_interior(nothing));
    EXPECT_NO_THROW(s.finish_or_throw());
}

TEST(BoxStencil, MakesNoAllocationInTheTimeLoop) {
    const auto cut = decomposition::even({8, 4, 4, 7}, {1, 1, 1, 2});
    std::barrier meet(2);

    run(2, [&](const comm::job& j) {
        box_stencil<float> s(
            j, cut,
            {.together = {{0, 1}}, .boundaries = {boundary::open, boundary::antiperiodic}, .phases = {1, 1, 1, -1}});
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
                s.apply({0, 1}, [](const auto& n) { EXPECT_EQ(n.of(0).here(), n.here()); });
            }
        });

        EXPECT_EQ(made, 0U);
    });
}
