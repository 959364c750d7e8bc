// SPDX-License-Identifier: Apache-2.0
// Messages change between direct and streamed while a plan runs. Ranks are threads; the machine is made up.
#include "oracle.hpp"
#include "padded_oracle.hpp"
#include "small_job.hpp"

#include <halocline/comm/costs.hpp>
#include <halocline/comm/detail/take_line.hpp>
#include <halocline/halo/detail/path_watch.hpp>
#include <halocline_test/allocation_counter.hpp>

#include <algorithm>
#include <array>
#include <barrier>
#include <cstdint>

using namespace halocline_test;
using comm::status;
using halo::path;
using halo::path_watch;
using lattice::decomposition;

namespace {

/// Streaming 16 KiB gains nothing: 2.07 us through the cache, 2.35 us bypassing it.
comm::costs near() {
    return {.flag_seconds = 20e-9,
            .message_seconds = 10e-9,
            .copy_seconds_per_byte = 1e-9,
            .run_seconds = 1e-9,
            .cached = {20e-9, 8e-9},
            .streamed = {300e-9, 8e-9},
            .take_seconds = 50e-9,
            .keep_seconds = 20e-9};
}

void decide_at(path_watch& watch, std::initializer_list<double> nanoseconds, bool expect_change) {
    for (const double ns : nanoseconds) watch.read(static_cast<std::uint64_t>(ns * 1e-9 / comm::seconds_per_tick()));
    EXPECT_EQ(watch.decide(), expect_change) << *nanoseconds.begin() << " ns; " << watch.describe();
}

/// Costs measured as slow, if `slow`, or as fast; whatever lines cost here, the plan finds the opposite.
comm::costs opposite(bool slow) {
    comm::costs c = near();
    if (slow) c.cached = {300e-9, 80e-9};
    c.take_seconds = slow ? 1.0 : 1e-12;
    return c;
}

constexpr int readings_in_a_row = 4;

} // namespace

TEST(PathWatch, FollowsWhatALineCosts) {
    path_watch watch(near(), 16384, false);

    EXPECT_NE(watch.describe().find("streamed when a line takes more than 10"), std::string::npos) << watch.describe();
    decide_at(watch, {50, 50, 50, 50}, false);
    decide_at(watch, {900, 50, 150, 50}, false); // the second least counts
    decide_at(watch, {90, 90, 100, 110}, false); // not by enough
    decide_at(watch, {150, 900, 50, 150}, true);
    EXPECT_TRUE(watch.streamed());
    decide_at(watch, {90, 90, 100, 110}, false); // nor back
    decide_at(watch, {50, 80, 50, 900}, true);
    EXPECT_FALSE(watch.streamed());
}

#if defined(__x86_64__)
// A line that is in no cache takes longer than one that this core has.
TEST(LookTimes, TheNearerOfTwoLinesTells) {
    alignas(128) std::array<std::byte, 256> lines{};
    std::byte *const message = &lines[0], *const label = &lines[128];
    halo::look_times looks(comm::ticks());
    const auto median_ticks = [&](bool message_gone, bool label_gone) {
        std::array<std::uint64_t, 1001> readings{};
        for (std::uint64_t& ticks : readings) {
            (void)looks.look(message, label);
            if (message_gone) __builtin_ia32_clflush(message);
            if (label_gone) __builtin_ia32_clflush(label);
            __builtin_ia32_mfence();
            ticks = looks.look(message, label);
        }
        std::ranges::nth_element(readings, readings.begin() + 500);
        return readings[500];
    };

    const std::uint64_t both_gone = median_ticks(true, true);
    EXPECT_LT(median_ticks(true, false), both_gone);
    EXPECT_LT(median_ticks(false, true), both_gone);
}
#endif

TEST(PathWatch, StaysWithSmallMessagesAndWithoutMeasurement) {
    comm::costs far_flags = near(); // however far away lines may be, only the flag counts
    far_flags.flag_seconds = far_flags.cached.message_seconds = 200e-9;
    path_watch small(near(), 64, false), tiny(far_flags, 64, false), unmeasured(comm::costs{}, 16384, false);

    decide_at(small, {1000, 1000}, false);
    decide_at(tiny, {1e9, 1e9}, false);
    EXPECT_EQ(tiny.describe(), "too small to be streamed");
    EXPECT_FALSE(unmeasured.watches());
}

TEST(PathWatch, WatchesOnlyShortRunsWhereMovesSkipWaits) {
    comm::costs c = near();
    c.moves_skip_waits = true;
    c.run_line_seconds = 2 * c.cached.line_seconds;
    path_watch moved(c, 16384, false), in_runs(c, {16384, true}, false);

    EXPECT_FALSE(moved.watches());
    decide_at(moved, {1000, 1000}, false);
    decide_at(in_runs, {1000, 1000}, true);
    EXPECT_TRUE(in_runs.streamed());
    EXPECT_FALSE(in_runs.may_claim());
}

TEST(PathWatch, ClaimsLinesThatAreAway) {
    path_watch watch(near(), 1024, false);

    EXPECT_TRUE(watch.claims());
    decide_at(watch, {25, 25}, false); // in this core's own cache: nobody reads the ghosts
    EXPECT_FALSE(watch.claims());
    decide_at(watch, {50, 50}, false);
    EXPECT_TRUE(watch.claims());
}

TEST(PathWatch, ClaimsNothingWhereThatDoesNotPay) {
    comm::costs c = near();
    c.claimed_ratio = 1.1;
    comm::costs far_flags = c; // too far for small messages to be streamed, however far away lines may be
    far_flags.flag_seconds = far_flags.cached.message_seconds = 200e-9;
    path_watch watch(c, 16384, false), small(far_flags, 64, false);
    path_watch cached = path_watch::always_cached(c), asked = path_watch::claims_only(c);

    for (const path_watch* w : {&watch, &small, &cached, &asked}) EXPECT_FALSE(w->claims() || w->may_claim());
    for (const path_watch* w : {&small, &cached, &asked}) EXPECT_FALSE(w->watches()) << "for which reason?";
    decide_at(watch, {50, 50}, false);
    EXPECT_FALSE(watch.claims());
    decide_at(watch, {900, 900}, true); // it still follows the machine
    EXPECT_TRUE(watch.streamed());
}

TEST(PathWatch, OnlyClaimsFollowWhereRanksShareOneCore) {
    comm::costs one_core;
    one_core.keep_seconds = near().keep_seconds;
    path_watch watch(one_core, 16384, false);

    decide_at(watch, {1e9, 1e9}, false);
    EXPECT_TRUE(watch.claims());
    decide_at(watch, {25, 25}, false);
    EXPECT_FALSE(watch.claims());
    EXPECT_FALSE(watch.may_stream());
    EXPECT_EQ(watch.describe(), "");
}

TEST(PathWatch, WhatIsFixedStaysAndClaimsCanBeRuledOut) {
    path_watch cached, claimed = path_watch::always_cached({}), streamed = path_watch::always_streamed(),
                       watch(near(), 16384, false);

    for (const path_watch* w : {&cached, &claimed, &streamed}) EXPECT_FALSE(w->watches());
    EXPECT_FALSE(cached.claims() || cached.may_claim() || cached.may_stream());
    EXPECT_TRUE(claimed.claims() && claimed.may_claim() && !claimed.may_stream());
    EXPECT_TRUE(streamed.streamed() && streamed.may_stream() && !streamed.may_claim());
    EXPECT_EQ(streamed.path(), path::streamed);
    EXPECT_FALSE(streamed.decide());
    EXPECT_TRUE(watch.claims() && watch.may_claim());
    claimed.never_claim();
    watch.never_claim();
    decide_at(watch, {50, 50}, false);
    EXPECT_FALSE(claimed.claims() || watch.claims() || watch.may_claim());
    decide_at(watch, {900, 900}, true); // it still follows the machine
    EXPECT_EQ(watch.path(), path::streamed);
}

TEST(PathWatch, TakingALineSetsItsByte) {
    std::byte bytes[2] = {std::byte{1}, std::byte{2}};

    EXPECT_GT(comm::ticks_to_take(bytes), 0U);

    EXPECT_EQ(bytes[0], std::byte{0});
    EXPECT_EQ(bytes[1], std::byte{2});
}

TEST(PathWatch, PlansChangeTheirPathOnceAndGhostsStayExact) {
    const auto cut = decomposition::even({8, 8, 8, 8}, {1, 1, 1, 2});
    for (const bool slow : {false, true}) {
        std::barrier meet(2);
        run(2, [&](const comm::job& j) {
            comm::assume_costs(j, opposite(slow));
            lattice::field<float> x(lattice::site_order::lexicographic(cut.local_box(j.rank()).extents), 24);
            halo::plan p(j, cut, {.bytes_per_site = 96, .order = x.shared_order()});
            const path first = slow ? path::streamed : path::direct, then = slow ? path::direct : path::streamed;
            for (int k = 1; k <= 3 * readings_in_a_row; ++k) {
                fill_with_oracle(x, cut, j.rank(), static_cast<std::uint64_t>(k));
                const auto pack = [&](int m, std::int64_t from, std::int64_t to, std::byte* target) {
                    for (std::int64_t s = from; s < to; ++s)
                        std::memcpy(target + 96 * s, &x.at(p.messages()[m].send_sites[s], 0), 96);
                };
                status s = status::misused;
                const std::uint64_t made = allocations_in(meet, [&] {
                    if (k % 2 == 0)
                        p.start(pack);
                    else
                        p.start(x);
                    s = p.finish();
                });

                ASSERT_EQ(s, status::ok);
                EXPECT_EQ(made, 0U);
                EXPECT_EQ(wrong_ghosts<float>(p, cut, 24, static_cast<std::uint64_t>(k)), 0) << k;
                for (const halo::plan_message& m : p.messages())
                    EXPECT_EQ(m.path, k < readings_in_a_row ? first : then) << k << p.describe();
            }
            EXPECT_EQ(p.statistics().path_changes, p.messages().size());
        });
    }
}

TEST(PathWatch, PaddedPlansTooInRunsOfManySitesAndOfOne) {
    for (const int across : {0, 3})
        for (const bool slow : {false, true})
            for (const path way : {path::automatic, path::packed}) {
                lattice::coordinate grid{1, 1, 1, 1};
                halo::ghost_widths widths;
                grid[across] = 2;
                widths.low[across] = widths.high[across] = 1;
                const auto cut = decomposition::even({8, 8, 8, 8}, grid);
                run(2, [&](const comm::job& j) {
                    comm::assume_costs(j, opposite(slow));
                    lattice::field<float> x(
                        site_order::lexicographic(halo::grown(cut.local_box(j.rank()), widths).extents), 24,
                        &j.memory());
                    shell_plan p(j, cut, {.widths = widths, .path = way}, {halo::bind(x)});
                    for (std::uint64_t k = 1; k <= 3 * readings_in_a_row; ++k) {
                        fill_padded(x, cut, j.rank(), widths, k);
                        p.start();
                        ASSERT_EQ(p.finish(), status::ok);
                        EXPECT_EQ(wrong_words(x, cut, j.rank(), {.widths = widths}, k), 0) << k;
                        EXPECT_EQ(p.statistics().path_changes, k < readings_in_a_row ? 0U : 1U) << k << p.describe();
                        const bool streamed = slow == (k < readings_in_a_row);
                        EXPECT_NE(p.describe().find(streamed ? "; streamed: " : "; not streamed: "), std::string::npos)
                            << k << p.describe();
                    }
                });
            }
}

/// What fills a line of a message only in part, because a run ends there, is put together before it is streamed; except
/// for sites that are larger than the block in which that is done.
TEST(PathWatch, PackedMessagesAreStreamedInWholeLinesWhateverTheRuns) {
    for (const int reals : {24, 2100})
        run(2, [&](const comm::job& j) {
            comm::assume_costs(j, {.flag_seconds = 100e-9,
                                   .copy_seconds_per_byte = 1e-12,
                                   .cached = {100e-9, 50e-9},
                                   .streamed = {300e-9, 5e-9},
                                   .take_seconds = 150e-9,
                                   .keep_seconds = 20e-9});
            std::vector<std::string> costs;
            for (const int across : {0, 3}) { // in runs of one site, in one run
                lattice::coordinate grid{1, 1, 1, 1};
                halo::ghost_widths widths;
                grid[across] = 2;
                widths.low[across] = widths.high[across] = 1;
                lattice::coordinate global{4, 4, 4, 4};
                global[across] *= 2;
                const auto cut = decomposition::even(global, grid);
                lattice::field<float> x(site_order::lexicographic(halo::grown(cut.local_box(j.rank()), widths).extents),
                                        reals, &j.memory());
                shell_plan p(j, cut, {.widths = widths, .path = path::packed}, {halo::bind(x)});
                fill_padded(x, cut, j.rank(), widths, 1);
                p.start();
                ASSERT_EQ(p.finish(), status::ok);
                EXPECT_EQ(wrong_words(x, cut, j.rank(), {.widths = widths}, 1), 0);

                const std::string text = p.describe(), before = "; streamed: ", after = " past it";
                const std::size_t begin = text.find(before), end = text.find(after);
                ASSERT_TRUE(begin < end && end != std::string::npos) << text;
                costs.push_back(text.substr(begin, end - begin));
            }
            EXPECT_EQ(costs[0] == costs[1], reals == 24);
        });
}

TEST(PathWatch, WhatIsAskedForStays) {
    const auto cut = decomposition::even({8, 8, 8, 8}, {1, 1, 1, 2});
    comm::job_options options = small_job();
    const auto changes = [&](const comm::job& j, path way) {
        comm::assume_costs(j, opposite(true));
        lattice::field<float> x(lattice::site_order::lexicographic(cut.local_box(j.rank()).extents), 24);
        halo::plan p(j, cut, {.bytes_per_site = 96, .path = way});
        for (int k = 0; k < 2 * readings_in_a_row; ++k) {
            p.start(x);
            EXPECT_EQ(p.finish(), status::ok);
        }
        return p.statistics().path_changes;
    };

    run(2, [&](const comm::job& j) {
        EXPECT_EQ(changes(j, path::direct), 0U);
        EXPECT_EQ(changes(j, path::streamed), 0U);
    });
    for (const path wish : {path::streamed, path::direct}) {
        options.path = wish;
        comm::run_threads(
            2, [&](const comm::job& j) { EXPECT_EQ(changes(j, path::automatic), 0U); }, options);
    }
}
