// SPDX-License-Identifier: Apache-2.0
// Halos with their ghosts in the field, around its sites or after them. Ranks are threads.
#include "random_exchanges.hpp"
#include "small_job.hpp"

#include <halocline/comm/costs.hpp>
#include <halocline_test/allocation_counter.hpp>

#include <barrier>
#include <functional>
#include <set>

using namespace halocline_test;
using comm::status;
using lattice::decomposition;
using lattice::field;

namespace {

constexpr unsigned seed = 19640521;

/// A padded field of this rank.
template <class T>
field<T> make_field(const comm::job& j, const decomposition& cut, const halo::ghost_widths& widths, int components) {
    return {site_order::lexicographic(halo::grown(cut.local_box(j.rank()), widths).extents), components, &j.memory()};
}

} // namespace

class PaddedPlanOnRanks : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, PaddedPlanOnRanks, testing::Values(1, 2, 3, 4, 5, 6, 8, 12));

TEST_P(PaddedPlanOnRanks, GhostsAreCopiesAndAllElseStays) {
    const auto ranks = static_cast<unsigned>(GetParam());
    std::printf("seed %u\n", seed + ranks);
    run(GetParam(), [&](const comm::job& j) { exchange_random_cases(j, kinds::shells, seed + ranks, 60); });
}

TEST(PaddedPlan, SendsOneMessageToEachDistinctNeighbourForAllCorners) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});

    run(2, [&](const comm::job& j) {
        auto x = make_field<double>(j, cut, {}, 1);
        shell_plan p(j, cut, {.shape = halo::shell::box, .corners = halo::corner_route::at_once}, {halo::bind(x)});
        p.start();
        ASSERT_EQ(p.finish(), status::ok);

        EXPECT_EQ(p.ghosts().size(), 80U);
        std::uint64_t messages = 0;
        for (const auto& traffic : p.statistics().by_transport) messages += traffic.messages;
        EXPECT_EQ(messages, 2U); // the other rank and itself
    });
}

TEST(PaddedPlan, SendsTwoMessagesAtMostPerDimensionByDimension) {
    const auto cut = decomposition::even({6, 3, 3, 3}, {3, 1, 1, 1});

    run(3, [&](const comm::job& j) {
        const halo::ghost_widths widths{{1, 1, 0, 0}, {1, 1, 0, 0}};
        auto x = make_field<double>(j, cut, widths, 1);
        shell_plan p(j, cut, {.widths = widths, .shape = halo::shell::box, .corners = halo::corner_route::by_dimension},
                     {halo::bind(x)});
        p.start();
        ASSERT_EQ(p.finish(), status::ok);

        std::uint64_t messages = 0;
        for (const auto& traffic : p.statistics().by_transport) messages += traffic.messages;
        EXPECT_EQ(messages, 2U + 1U); // x: both neighbours; y: itself
    });
}

TEST(PaddedPlan, ReportsEachGhostRegionOnce) {
    const auto cut = decomposition::even({4, 2, 2, 4}, {2, 1, 1, 2});

    for (const auto route : {halo::corner_route::at_once, halo::corner_route::by_dimension})
        run(4, [&](const comm::job& j) {
            auto x = make_field<float>(j, cut, {}, 2);
            shell_plan p(j, cut, {.shape = halo::shell::box, .corners = route}, {halo::bind(x)});
            for (int k = 0; k < 20; ++k) {
                std::multiset<int> seen;
                p.start();
                for (int polls = 0; polls < 5; ++polls)
                    for (const int g : p.completed()) seen.insert(g);
                ASSERT_EQ(p.finish(), status::ok);
                for (const int g : p.completed()) seen.insert(g);

                ASSERT_EQ(seen.size(), p.ghosts().size());
                ASSERT_EQ(std::set<int>(seen.begin(), seen.end()).size(), p.ghosts().size());
            }
        });
}

TEST(PaddedPlan, SeveralPlansAreInFlightAtOnce) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 2, 2});
    const halo::ghost_widths wide{{2, 1, 1, 2}, {1, 2, 2, 1}};

    // By dimension, a later phase of one plan must make progress while its rank waits for the other plan.
    for (const auto route : {halo::corner_route::at_once, halo::corner_route::by_dimension})
        run(4, [&](const comm::job& j) {
            auto a = make_field<double>(j, cut, wide, 3);
            auto b = make_field<float>(j, cut, wide, 5);
            const shell_options o{.name = "a", .widths = wide, .shape = halo::shell::box, .corners = route};
            shell_options e = o;
            e.parity = 1;
            shell_plan p(j, cut, o, {halo::bind(a)}), q(j, cut, e, {halo::bind(b)});
            for (std::uint64_t k = 1; k <= 20; ++k) {
                fill_padded(a, cut, j.rank(), wide, k);
                fill_padded(b, cut, j.rank(), wide, 100 + k);
                // Ranks start and finish them in different orders.
                shell_plan& first = j.rank() % 2 == 0 ? p : q;
                shell_plan& second = j.rank() % 2 == 0 ? q : p;
                first.start();
                second.start();
                ASSERT_EQ((k % 3 == 0 ? first : second).finish(), status::ok);
                ASSERT_EQ((k % 3 == 0 ? second : first).finish(), status::ok);
                ASSERT_EQ(wrong_words(a, cut, j.rank(), o, k), 0);
                ASSERT_EQ(wrong_words(b, cut, j.rank(), e, 100 + k), 0);
            }
        });
}

TEST(PaddedPlan, MakesNoAllocationBetweenStartAndFinish) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    std::barrier meet(2);

    run(2, [&](const comm::job& j) {
        auto x = make_field<float>(j, cut, {}, 24);
        auto y = make_field<float>(j, cut, {}, 24);
        shell_plan once(j, cut,
                        {.phases = {1, -1, 1, {0.6, 0.8}},
                         .shape = halo::shell::box,
                         .corners = halo::corner_route::at_once,
                         .reverse = true},
                        {halo::bind(x), halo::bind(y)});
        shell_plan serial(
            j, cut, {.phases = {1, 1, 1, -1}, .shape = halo::shell::box, .corners = halo::corner_route::by_dimension},
            {halo::bind(x)});
        shell_plan rounded(j, cut, {.phases = {1, 1, {0, 1}, 1}, .format = halo::message_format::half, .reverse = true},
                           {halo::bind(x), halo::bind(y)});
        bool ok = true;
        std::size_t seen = 0;
        const std::uint64_t made = halocline_test::allocations_in(meet, [&] {
            for (int k = 0; k < 100; ++k) {
                once.start(k % 2);
                seen += once.completed().size();
                ok = once.finish() == status::ok && ok;
                seen += once.completed().size();
                serial.start();
                (void)serial.test();
                ok = serial.finish() == status::ok && ok;
                once.start_reverse(k % 2);
                ok = once.finish() == status::ok && ok;
                rounded.start(k % 2);
                ok = rounded.finish() == status::ok && ok;
                rounded.start_reverse(k % 2);
                ok = rounded.finish() == status::ok && ok;
            }
        });

        EXPECT_TRUE(ok);
        EXPECT_EQ(seen, 100U * 80U);
        EXPECT_EQ(made, 0U);
    });
}

TEST(PaddedPlan, ReverseIsTheAdjointOfEachPath) {
    constexpr std::array ways{halo::path::packed, halo::path::direct, halo::path::streamed, halo::path::joint,
                              halo::path::automatic};
    for (const int ranks : {1, 2, 3, 4, 6})
        run(ranks, [&](const comm::job& j) {
            std::mt19937 generator(7U + static_cast<unsigned>(ranks));
            for (std::size_t round = 0; round < 24; ++round) {
                padded_case c = random_padded_case(generator, ranks);
                c.apart = false;
                c.options.format = halo::message_format::as_stored; // formats have no double, and wait in slots
                c.options.reverse = true;
                c.options.path = ways[round % ways.size()];
                if (c.options.checks == check_level::comm)
                    c.options.checks = check_level::normal; // waits in slots, too
                c.in_slab = c.options.path == halo::path::automatic ? 0 : 1;
                c.text += ", now path " + std::string(to_string(c.options.path));
                expect_reverse_is_the_adjoint<double>(j, c);
                if (testing::Test::HasFatalFailure()) return j.abort("test failed");
            }
        });
}

// By dimension, corners are forwarded by ranks that have received them as ghosts; but those are in the destination.
TEST(PaddedPlan, FieldsWithOtherDestinationsGetTheirCornersAtOnce) {
    const auto cut = decomposition::even({4, 6, 2, 4}, {2, 3, 1, 1});

    run(6, [&](const comm::job& j) {
        auto from = make_field<double>(j, cut, {}, 1), to = make_field<double>(j, cut, {}, 1);
        const auto made = [&](halo::corner_route corners) {
            const shell_options o{.shape = halo::shell::box, .corners = corners};
            return shell_plan(j, cut, o, {{.source = {halo::view(from)}, .destination = {halo::view(to)}}});
        };
        const std::string refused = refusal([&] { made(halo::corner_route::by_dimension); });
        comm::costs c = comm::measured_costs(j);
        c.message_seconds = 1; // by dimension would be much less expensive
        comm::assume_costs(j, c);
        shell_plan p = made(halo::corner_route::automatic);

        EXPECT_NE(refused.find("each field must be its own destination"), std::string::npos) << refused;
        EXPECT_EQ(p.route(), halo::corner_route::at_once);
        EXPECT_NE(p.describe().find("ghosts of other fields can't be forwarded"), std::string::npos) << p.describe();
    });
}

TEST(PaddedPlan, ReverseHasTheSameBitsEachTime) {
    const auto cut = decomposition::even({4, 4, 2, 4}, {2, 2, 1, 1});

    run(4, [&](const comm::job& j) {
        auto x = make_field<float>(j, cut, {}, 3);
        shell_plan p(j, cut, {.shape = halo::shell::box, .reverse = true}, {halo::bind(x)});
        std::vector<float> first;
        for (int k = 0; k < 50; ++k) {
            std::mt19937 draw(static_cast<unsigned>(j.rank()));
            for (float& v : x.values()) v = static_cast<float>(draw()) * 1e-3F;
            p.start_reverse();
            ASSERT_EQ(p.finish(), status::ok);
            if (k == 0) first.assign(x.values().begin(), x.values().end());
            ASSERT_EQ(std::memcmp(first.data(), x.data(), first.size() * sizeof(float)), 0);
        }
    });
}

TEST(AppendedPlan, HasEachGhostWhereItsSitesSay) {
    const auto cut = decomposition::even({4, 3, 2, 8}, {1, 1, 1, 2});
    const halo::shell_options o{
        .widths = {{1, 0, 0, 2}, {1, 1, 0, 1}}, .layout = halo::ghost_layout::appended, .shape = halo::shell::box};

    run(2, [&](const comm::job& j) {
        const halo::appended_sites sites(cut, j.rank(), o);
        field<double> x(sites.order(*site_order::lexicographic(cut.local_box(j.rank()).extents)), 1, &j.memory());
        const auto value = [&](const coordinate& at) {
            return static_cast<double>(lattice::lexicographic_index(wrapped(at, cut.global()), cut.global()));
        };
        for_each_site(cut.local_box(j.rank()), [&](const coordinate& at, std::int64_t i) { x.at(i, 0) = value(at); });
        shell_plan p(j, cut, o, {halo::bind(x)});
        p.start();
        ASSERT_EQ(p.finish(), status::ok);

        ASSERT_EQ(sites.ghosts().size(), 17U); // 3 x 2 x 1 x 3 directions without the middle
        for (const coordinate& none : {coordinate{0, 0, 1, 0}, {2, -1, 0, 0}, {1, 1, 1, 2}, {0, 0, 0, -2}})
            EXPECT_EQ(sites.ghosts(none), nullptr);
        EXPECT_EQ(sites.ghosts({0, 0, 1, 0}), nullptr);
        EXPECT_EQ(sites.ghosts({0, -1, 0, 0}), nullptr);
        const auto* corner = sites.ghosts({-1, 1, 0, -1});
        ASSERT_NE(corner, nullptr);
        const int t = cut.local_box(j.rank()).origin[3];
        EXPECT_EQ(corner->sites.origin, (coordinate{-1, 3, 0, t - 2}));
        EXPECT_EQ(corner->sites.extents, (coordinate{1, 1, 2, 2}));
        EXPECT_EQ(sites.number({-1, 3, 0, t - 2}), corner->first);
        EXPECT_EQ(sites.number({-1, -1, 0, 0}), -1);
        for (const auto& region : sites.ghosts())
            for_each_site(region.sites, [&](const coordinate& at, std::int64_t i) {
                EXPECT_EQ(sites.number(at), region.first + i);
                EXPECT_EQ(x.at(region.first + i, 0), value(at));
            });
    });
}

/// One rank with a box of 4^4, and what plans on it refuse.
class RefusedShellPlan : public testing::Test {
  protected:
    decomposition cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    comm::job job = comm::job::single(small_job());
    field<double> bare{site_order::lexicographic({4, 4, 4, 4}), 1}, padded{site_order::lexicographic({6, 6, 6, 6}), 1};

    /// The error of a plan, or of what `use` does with it before finish_or_throw().
    std::string said(
        const halo::shell_options& options, field<double>& x,
        const std::function<void(shell_plan&)>& use = [](shell_plan& p) { p.start(); }) {
        return refusal([&] {
            shell_plan p(job, cut, options, {halo::bind(x)});
            use(p);
            p.finish_or_throw();
        });
    }
    void expect_said(const std::string& part, const halo::shell_options& options, field<double>& x) {
        const std::string text = said(options, x);
        EXPECT_NE(text.find(part), std::string::npos) << text;
    }
};

TEST_F(RefusedShellPlan, FieldsOfAnotherShape) {
    const halo::shell_options appended{.name = "bare", .layout = halo::ghost_layout::appended};
    field<double> none;

    EXPECT_EQ(said({}, padded), "accepted");
    expect_said("'bare': a field covers 4.4.4.4; on rank 0 the appended_sites are 768.1.1.1", appended, bare);
    expect_said("'bare': a field covers 4.4.4.4; on rank 0 the local box grown by the ghost widths is 6.6.6.6",
                {.name = "bare"}, bare);
    expect_said("'bare': a field is bound that has no storage", {.name = "bare"}, none);
}

TEST_F(RefusedShellPlan, ExchangesItWasNotMadeFor) {
    EXPECT_EQ(said({.checks = check_level::normal}, padded, [](shell_plan& p) { p.require_fresh(7); }),
              "halo 'halo': require_fresh(7): the plan was made with 1 binding, 0");
    EXPECT_EQ(said({.checks = check_level::normal}, padded, [](shell_plan& p) { p.start(-1); }),
              "halo 'halo': start(-1): the plan was made with 1 binding, 0");
    EXPECT_EQ(said({}, padded,
                   [](shell_plan& p) {
                       p.start_reverse();
                       EXPECT_EQ(p.finish(), status::misused);
                   }),
              "halo 'halo': start_reverse(): the plan was made without shell_options::reverse");
}

TEST_F(RefusedShellPlan, PhasesThatDoNotFitTheField) {
    field<std::uint32_t> words(site_order::lexicographic({6, 6, 6, 6}), 2);

    expect_said("'halo': field 0 has 1 components per site, which are no pairs (re, im) to multiply by phase (",
                {.phases = {1, 1, {0, 1}, 1}}, padded);
    field<double> without_z(site_order::lexicographic({6, 6, 4, 6}), 1); // nothing that the phase would multiply
    EXPECT_EQ(said({.widths = {{1, 1, 0, 1}, {1, 1, 0, 1}}, .phases = {1, 1, {0, 1}, 1}}, without_z), "accepted");
    EXPECT_NE(refusal([&] {
                  shell_plan(job, cut, {.phases = {1, 1, 1, -1}}, {halo::bind(words)});
              }).find("'halo': field 0 is not of float or double: nothing can be multiplied by phase (-1, "),
              std::string::npos);
    EXPECT_NE(refusal([&] {
                  shell_plan(job, cut, {.boundaries = {{{}, lattice::boundary::antiperiodic}}}, {halo::bind(words)});
              }).find("'halo': field 0 is not of float or double: nothing can be multiplied by phase (-1, "),
              std::string::npos);
}

TEST_F(RefusedShellPlan, FormatsThatDoNotFitTheField) {
    const auto half = halo::message_format::half;
    expect_said("'halo': field 0 has 1 double per site: half messages are made of floats", {.format = half}, padded);
    expect_said("format 3: must be one of as_stored, half, bfloat16", {.format = halo::message_format{3}}, padded);
}

// On all ranks, whatever list the selection is asked for: the others would wait for the one that left.
TEST(PaddedPlan, RefusesASelectionThatThrowsOnOneRank) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    for (const bool more : {false, true}) {
        const auto texts = refusals(2, [&](const comm::job& j) {
            auto x = make_field<double>(j, cut, {}, 1);
            halo::shell_options options{.reverse = more, .checks = more ? check_level::normal : check_level::light};
            options.select = [&](const coordinate&) -> bool {
                if (j.rank() == 0) throw input_error("no colour is chosen");
                return true;
            };
            shell_plan p(j, cut, options, {halo::bind(x)});
        });
        for (const std::string& text : texts) EXPECT_NE(text.find("no colour is chosen"), std::string::npos) << text;
    }
}

TEST(PaddedPlan, RefusesSelectionsThatDifferBetweenRanks) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    const auto said = [&](const halo::shell_options& all, auto&& select_on) {
        const auto texts = refusals(2, [&](const comm::job& j) {
            halo::shell_options options = all;
            auto x = make_field<double>(j, cut, options.widths, 1);
            options.select = select_on(j.rank());
            shell_plan p(j, cut, options, {halo::bind(x)});
        });
        EXPECT_EQ(texts[0], texts[1]);
        return texts[0];
    };
    const auto as_many = [](int rank) { return [rank](const coordinate& x) { return x[0] % 2 == rank; }; };
    const auto other_corners = [](int rank) {
        return [rank](const coordinate& x) { return x[0] == 1 || (x == coordinate{3, 3, 3, 7} && rank == 1); };
    };
    const std::string expects = ", than rank 1 expects; select must choose the same sites on all ranks";

    for (const auto route : {halo::corner_route::at_once, halo::corner_route::by_dimension})
        EXPECT_EQ(said({.name = "s", .shape = halo::shell::box, .corners = route},
                       [](int) { return [](const coordinate& x) { return x[0] % 2 == 0; }; }),
                  "accepted");
    EXPECT_EQ(said({.name = "s"}, as_many),
              "halo 's': rank 0 sends rank 1 other sites, for its ghosts behind t-low" + expects);
    const std::string corners = said({.name = "s", .shape = halo::shell::box}, other_corners);
    EXPECT_NE(corners.find("select must choose the same sites on all ranks"), std::string::npos) << corners;
    const std::string one = said(
        {.name = "s"}, [&](int rank) { return rank == 0 ? std::function<bool(const coordinate&)>() : as_many(rank); });
    EXPECT_NE(one.find(", selected sites"), std::string::npos) << one;
}

TEST(PaddedPlan, RefusesPhasesThatDifferBetweenRanks) {
    const auto cut = decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    const auto texts = refusals(2, [&](const comm::job& j) {
        auto x = make_field<double>(j, cut, {}, 2);
        const double sign = j.rank() == 0 ? 1 : -1;
        shell_plan p(j, cut, {.name = "twisted", .phases = {1, 1, 1, sign}}, {halo::bind(x)});
    });
    for (const std::string& text : texts) EXPECT_NE(text.find("phase (-1, 0) in t"), std::string::npos) << text;
}

// All 80 directions of each rank at once, by both routes: a ghost beyond several edges has the product of their phases.
TEST(PaddedPlan, AGhostBeyondSeveralEdgesHasTheProductOfTheirPhases) {
    const auto cut = decomposition::even({4, 4, 2, 4}, {2, 1, 1, 2});
    const phases twists{-1, {0, 1}, {1, 1}, -1};
    for (const auto route : {halo::corner_route::at_once, halo::corner_route::by_dimension})
        for (const auto path : {halo::path::packed, halo::path::direct, halo::path::streamed})
            run(4, [&](const comm::job& j) {
                auto x = make_field<double>(j, cut, {}, 2);
                shell_plan p(j, cut,
                             {.boundaries = {{{}, {}, {}, lattice::boundary::antiperiodic}},
                              .phases = {-1, {0, 1}, {1, 1}, 1},
                              .shape = halo::shell::box,
                              .corners = route,
                              .path = path},
                             {halo::bind(x)});
                fill_own(x, cut, j.rank(), p.options(), 1);
                p.start();
                ASSERT_EQ(p.finish(), status::ok);

                const lattice::box outer = halo::grown(cut.local_box(j.rank()), {});
                std::set<std::pair<double, double>> seen;
                for_each_site(outer, [&](const coordinate& at, std::int64_t i) {
                    const std::complex<double> phase = phase_at(at, cut.global(), twists);
                    seen.emplace(phase.real(), phase.imag());
                    const coordinate from = wrapped(at, cut.global());
                    for (int c = 0; c < 2; ++c)
                        ASSERT_EQ(x.at(i, c), times(phase, c, [&](int k) {
                                      return value_at<double>(from, cut, p.options(), k, 1);
                                  }));
                });
                EXPECT_EQ(seen.size(), 8U); // 1, i, 1 + i and 1 - i, with both signs
            });
}

// A caller's own array and a field, swapped: bindings follow the memory, and binding_of() finds it.
TEST(PaddedPlan, FindsTheBindingOfMemory) {
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 2});
    run(2, [&](const comm::job& j) {
        auto u = make_field<double>(j, cut, {}, 2), v = make_field<double>(j, cut, {}, 2);
        std::vector<double> own(u.values().size());
        shell_plan p(j, cut, {},
                     {halo::bind(u), halo::bind(v), halo::bind(halo::view(own.data(), u.shared_order(), 2))});
        EXPECT_EQ(p.binding_of(own.data()), 2);
        u.swap(v);
        EXPECT_EQ(p.binding_of(u), 1);
        EXPECT_EQ(p.binding_of(v), 0);
        EXPECT_EQ(p.binding_of(field<double>()), -1);
        EXPECT_EQ(p.binding_of(make_field<double>(j, cut, {}, 2)), -1);

        fill_own(u, cut, j.rank(), p.options(), 1);
        std::ranges::copy(u.values(), own.begin());
        for (const int which : {p.binding_of(u), 2}) {
            p.start(which);
            ASSERT_EQ(p.finish(), status::ok);
        }
        EXPECT_TRUE(std::ranges::equal(own, u.values()));
        EXPECT_EQ(wrong_words(u, cut, j.rank(), p.options(), 1), 0);
    });
}

TEST_F(RefusedShellPlan, CallsAtTheWrongTime) {
    const std::string early = "halo 'halo': start() before finish() of the last exchange";
    const auto start_twice = [](shell_plan& p) {
        p.start();
        p.start();
    };
    const auto start_both_ways = [](shell_plan& p) {
        p.start();
        p.start_reverse();
    };
    const auto finish_once_more = [](shell_plan& p) {
        p.start();
        p.finish_or_throw();
    };

    EXPECT_EQ(said({}, padded, start_twice), early);
    EXPECT_EQ(said({.reverse = true}, padded, start_both_ways), early);
    EXPECT_EQ(said({}, padded, finish_once_more), "halo 'halo': finish() without start()");
}

TEST_F(RefusedShellPlan, IsToldInTheEndIfNoFinishWasCalled) {
    for (const bool told : {false, true}) {
        testing::internal::CaptureStderr();
        run(1, [&](const comm::job& j) {
            const auto whole = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
            auto x = make_field<double>(j, whole, {}, 1);
            shell_plan p(j, whole, {.name = "p"}, {halo::bind(x)});
            p.start(5);
            if (told) {
                EXPECT_EQ(p.finish(), status::misused);
            }
        });
        const std::string text = testing::internal::GetCapturedStderr();
        EXPECT_EQ(text.find("halo 'p': start(5): the plan was made with 1 binding, 0; since") != text.npos, !told);
    }
}

TEST_F(RefusedShellPlan, IsToldWhenAnotherTakesItsPlace) {
    shell_plan p(job, cut, {.name = "p"}, {halo::bind(padded)});
    halo::region_plan r(job, {}, {}, {halo::bind(padded)}, {.name = "r"});
    p.start(5);
    r.start(5);

    testing::internal::CaptureStderr();
    p = shell_plan(job, cut, {.name = "p"}, {halo::bind(padded)});
    r = halo::region_plan(job, {}, {}, {halo::bind(padded)}, {.name = "r"});
    const std::string text = testing::internal::GetCapturedStderr();

    EXPECT_NE(text.find("halo 'p': start(5): the plan was made with 1 binding, 0; since"), std::string::npos) << text;
    EXPECT_NE(text.find("'r': start(5): the plan was made with 1 binding, 0; since"), std::string::npos) << text;
    p.start();
    EXPECT_EQ(p.finish(), status::ok);
}

TEST_F(RefusedShellPlan, MembersThatTheirTeamDoesNotHave) {
    const std::string no_member =
        "halo 'halo': it was called as member 3 of a team of 3: a team has 1 member or more, which count from 0";

    EXPECT_EQ(said({}, padded, [](shell_plan& p) { p.start(0, {3, 3}); }), no_member);
    EXPECT_EQ(said({.reverse = true}, padded,
                   [](shell_plan& p) {
                       p.start_reverse(0, {3, 3});
                       EXPECT_EQ(p.finish({3, 3}), status::misused);
                   }),
              no_member);
}

TEST_F(RefusedShellPlan, UseAfterItWasMovedFrom) {
    const std::string text =
        "a shell_plan is used after it was moved from: it can be assigned to or destroyed, nothing else";
    EXPECT_EQ(said({}, padded, [](shell_plan& p) { const shell_plan taken = std::move(p); }), text);
    EXPECT_EQ(said({}, padded,
                   [&](shell_plan& p) {
                       const shell_plan taken = std::move(p);
                       EXPECT_THROW((void)p.ghosts(), input_error);
                       EXPECT_DEATH((void)p.is_fresh(), text);
                   }),
              text);
}

TEST_F(RefusedShellPlan, ChoicesThatNoEnumeratorStandsFor) {
    EXPECT_EQ(said({.layout = static_cast<halo::ghost_layout>(2)}, padded),
              "halo 'halo': layout 2: must be one of padded, appended");
    EXPECT_EQ(said({.shape = static_cast<halo::shell>(2)}, padded), "halo 'halo': shape 2: must be one of faces, box");
    EXPECT_EQ(said({.corners = static_cast<halo::corner_route>(9)}, padded),
              "halo 'halo': corners 9: must be one of automatic, at once, by dimension");
    EXPECT_EQ(said({.path = static_cast<halo::path>(5)}, padded),
              "halo 'halo': path 5: must be one of automatic, direct, streamed, joint, packed");
    EXPECT_EQ(said({.checks = static_cast<check_level>(4)}, padded),
              "halo 'halo': checks 4: must be one of off, light, normal, comm");
}

TEST(PaddedPlan, RefusesAHaloWiderThanALocalBox) {
    const decomposition cut({4, 4, 4, 7}, {{{0, 4}, {0, 4}, {0, 4}, {0, 3, 5, 7}}});
    const halo::ghost_widths widths{{0, 0, 0, 3}, {0, 0, 0, 1}};

    const auto texts = refusals(3, [&](const comm::job& j) {
        auto x = make_field<double>(j, cut, widths, 1);
        shell_plan p(j, cut, {.name = "wide", .widths = widths}, {halo::bind(x)});
    });

    for (const std::string& text : texts)
        EXPECT_NE(text.find("ghost width 3 behind t-low is wider than the local box of rank 1, 4.4.4.2 with 2 in t"),
                  std::string::npos)
            << text;
}

// Nothing else bounds the ghosts beyond an open edge of a dimension that is not cut.
TEST(PaddedPlan, RefusesWidthsBeyondAnOpenEdgeThatOverflow) {
    const auto cut = decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1});
    const halo::ghost_widths huge{{0, 0, 1'200'000'000, 0}, {0, 0, 1'200'000'000, 0}};
    const halo::shell_options options{
        .widths = huge,
        .boundaries = {lattice::boundary::periodic, lattice::boundary::periodic, lattice::boundary::open}};
    const comm::job j = comm::job::single(small_job());
    field<double> x(site_order::lexicographic({4, 4, 4, 4}), 1);

    EXPECT_EQ(refusal([&] { shell_plan(j, cut, options, {halo::bind(x)}); }),
              "halo 'halo': ghost widths 1200000000 and 1200000000 around 4 sites in z make more than 2147483647");
    EXPECT_EQ(refusal([&] {
                  (void)halo::grown(cut.local_box(0), {{0, -1, 0, 0}, {}});
              }),
              "ghost width -1: must be 0 or more");
    EXPECT_EQ(refusal([&] { (void)halo::grown(cut.local_box(0), huge); }),
              "ghost widths 1200000000 and 1200000000 around 4 sites in z make more than 2147483647");
}
