// SPDX-License-Identifier: Apache-2.0
// Costs are measured by all ranks together, whichever of them have a core to themselves, and whatever else runs.
#include "job/job_core.hpp"
#include "measure/agreed_costs.hpp"

#include <halocline/comm/costs.hpp>
#include <halocline/comm/detail/copy_bytes.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/processors.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <vector>

namespace {

using namespace halocline::comm;

/// As on hosts with more and with fewer cores than ranks.
TEST(Costs, RanksWithACoreAndRanksThatShareOneMeasureTogether) {
    job_options options;
    options.transports = {"shm"};
    options.path = path::direct; // so that nothing is measured when the job starts
    options.deadline = std::chrono::seconds(20);
    const std::vector<int> usable = usable_processors();
    const std::vector<std::vector<int>> jobs{{1, 1, 0, 0}, {0, 0, 1, 1}, {1, 0}, {0, 1, 1}, {0, 0, 0}};
    for (const std::vector<int>& has_core : jobs) {
        std::vector<costs> seen(has_core.size());
        run_threads(
            static_cast<int>(has_core.size()),
            [&](const job& j) {
                const auto rank = static_cast<std::size_t>(j.rank());
                j.core().processor = has_core[rank] != 0 ? usable[rank % usable.size()] : -1;
                j.core().spin = spinning(j.options(), has_core[rank] != 0);
                seen[rank] = measured_costs(j);
                j.barrier(); // all have reached this point by the same calls
            },
            options);
        EXPECT_GT(seen[0].flag_seconds, 0);
        for (const costs& c : seen) {
            EXPECT_EQ(c.flag_seconds, seen[0].flag_seconds);
            EXPECT_EQ(c.cached.line_seconds, seen[0].cached.line_seconds);
            EXPECT_EQ(c.take_seconds, seen[0].take_seconds);
        }
    }
}

/// The measurement of a machine with 90 ns from core to core.
measurement quiet() {
    return {.seen = {.flag_seconds = 150e-9,
                     .message_seconds = 20e-9,
                     .copy_seconds_per_byte = 25e-12,
                     .run_seconds = 1e-9,
                     .cached = {200e-9, 14e-9},
                     .streamed = {400e-9, 11e-9},
                     .run_line_seconds = 16e-9,
                     .pulled_line_seconds = 13e-9,
                     .scattered_line_seconds = 25e-9,
                     .take_seconds = 90e-9,
                     .keep_seconds = 25e-9,
                     .alone_seconds = 80e-6,
                     .joint_seconds = 50e-6,
                     .network_flag_seconds = 20e-6},
            .claimed = {200e-9, 15e-9},
            .own_core = true,
            .shares_memory = true};
}

TEST(AgreedCosts, AreThoseOfQuietRanks) {
    measurement waited = quiet(), alone = quiet();
    waited.seen.flag_seconds = waited.seen.take_seconds = waited.seen.cached.line_seconds = 4e-3;
    alone.seen.take_seconds = alone.seen.scattered_line_seconds = 0; // no lines measured
    alone.seen.cached = alone.claimed = {};

    for (const std::vector<measurement>& all : {std::vector{quiet()},
                                                {quiet(), waited},
                                                {waited, quiet(), waited, quiet()},
                                                {alone, waited, quiet(), alone}}) {
        const costs c = agreed(all);

        EXPECT_EQ(c.flag_seconds, quiet().seen.flag_seconds);
        EXPECT_EQ(c.cached.line_seconds, quiet().seen.cached.line_seconds);
        EXPECT_EQ(c.claimed_ratio, 15.0 / 14.0); // not what a rank had that was disturbed in one of the two
        EXPECT_EQ(c.run_line_seconds, quiet().seen.run_line_seconds);
        EXPECT_EQ(c.pulled_line_seconds, quiet().seen.pulled_line_seconds);
        EXPECT_EQ(c.scattered_line_seconds, quiet().seen.scattered_line_seconds);
        EXPECT_EQ(c.take_seconds, quiet().seen.take_seconds);
        EXPECT_EQ(c.alone_seconds, quiet().seen.alone_seconds);
        EXPECT_EQ(c.joint_seconds, quiet().seen.joint_seconds);
    }
}

TEST(AgreedCosts, AreNoneThatHardwareCantHave) {
    measurement stopped = quiet(); // every time it measured
    costs& s = stopped.seen;
    for (double* const time :
         {&s.flag_seconds, &s.message_seconds, &s.cached.line_seconds, &s.streamed.line_seconds, &s.run_line_seconds,
          &s.pulled_line_seconds, &s.cached.message_seconds, &s.streamed.message_seconds, &s.scattered_line_seconds})
        *time = 4e-3;
    s.copy_seconds_per_byte = s.run_seconds = s.network_flag_seconds = 1;

    const costs c = agreed({stopped, stopped});
    stopped.own_core = false;
    const costs shared = agreed({stopped, stopped});
    stopped.shares_memory = false;
    const costs network = agreed({stopped, stopped});

    const double take = quiet().seen.take_seconds;
    EXPECT_EQ(c.flag_seconds, 2 * take);
    EXPECT_EQ(shared.flag_seconds, 2e-6);  // a context switch
    EXPECT_EQ(network.flag_seconds, 4e-3); // unknown
    EXPECT_LE(c.message_seconds, take);
    EXPECT_LE(c.cached.line_seconds, 2 * take);
    EXPECT_LE(c.streamed.line_seconds, 2 * take);
    EXPECT_LE(c.run_line_seconds, 2 * take);
    EXPECT_LE(c.pulled_line_seconds, 2 * take);
    EXPECT_LE(c.cached.message_seconds, 8 * take);
    EXPECT_LE(c.streamed.message_seconds, 8 * take);
    EXPECT_LE(c.scattered_line_seconds, 4 * take);
    EXPECT_LE(c.copy_seconds_per_byte, 1e-9);
    EXPECT_LE(c.run_seconds, 1e-7);
    EXPECT_LE(c.network_flag_seconds, 1e-4);
}

TEST(AgreedCosts, OfWritesThroughTheCacheAreThoseOfTheFasterWay) {
    measurement claiming = quiet(), neither = quiet();
    claiming.claimed = {300e-9, 9e-9};
    neither.claimed = neither.seen.cached = {};

    EXPECT_EQ(agreed({quiet()}).cached.message_seconds, 200e-9);
    EXPECT_EQ(agreed({claiming}).cached.line_seconds, 9e-9);
    EXPECT_EQ(agreed({claiming}).cached.message_seconds, 300e-9);
    EXPECT_EQ(agreed({neither}).claimed_ratio, 0);
    EXPECT_EQ(agreed({neither}).cached.line_seconds, 0);
}

/// As on Zen 5, far and near.
const costs zen5_far{.cached = {0.2e-6, 3.9e-9},
                     .streamed = {0.3e-6, 3.5e-9},
                     .run_line_seconds = 15e-9,
                     .moves_skip_waits = true,
                     .pulled_line_seconds = 10e-9},
    zen5_near{.cached = {0.1e-6, 2.1e-9},
              .streamed = {0.2e-6, 5.1e-9},
              .run_line_seconds = 4.6e-9,
              .moves_skip_waits = true,
              .pulled_line_seconds = 3.3e-9};

TEST(Costs, OfShortRunsAreTheirOwnWhereMovesSkipWaits) {
    constexpr std::size_t bytes = 64000;
    const written_lines moved(bytes), in_runs(bytes, true);
    costs elsewhere = zen5_far;
    elsewhere.moves_skip_waits = false;

    EXPECT_DOUBLE_EQ(zen5_far.cached_seconds(moved), 0.2e-6 + 1000 * 3.9e-9);
    EXPECT_DOUBLE_EQ(zen5_far.cached_seconds(in_runs), 0.2e-6 + 1000 * 15e-9);
    EXPECT_DOUBLE_EQ(elsewhere.cached_seconds(in_runs), elsewhere.cached_seconds(moved));

    EXPECT_TRUE(streaming_pays(path::automatic, zen5_far, in_runs));
    EXPECT_FALSE(streaming_pays(path::automatic, zen5_near, in_runs));
    costs disturbed = zen5_far;
    disturbed.cached.line_seconds = 1e-6;
    EXPECT_FALSE(streaming_pays(path::automatic, disturbed, moved)) << "whatever was measured";
    EXPECT_TRUE(streaming_pays(path::streamed, disturbed, moved)) << "asked for";
    disturbed.claimed_ratio = 0.5;
    EXPECT_FALSE(disturbed.claims_pay());
}

TEST(AgreedCosts, MovesSkipWaitsWhereTheyDoOnAllRanks) {
    measurement zen5 = quiet();
    zen5.seen.moves_skip_waits = true;

    EXPECT_TRUE(agreed({zen5, zen5}).moves_skip_waits);
    EXPECT_FALSE(agreed({zen5, quiet()}).moves_skip_waits);
    EXPECT_EQ(unmeasured_costs().moves_skip_waits, moves_skip_waits());
}

/// There lines written in full take as long through the cache as past it, whether the cores are near or far.
TEST(Costs, APulledLineTellsThatCoresWereFar) {
    const costs far{.cached = {0, 4e-9}, .streamed = {0, 3.5e-9}, .pulled_line_seconds = 10e-9},
        near{.cached = {0, 2e-9}, .streamed = {0, 5e-9}, .pulled_line_seconds = 3e-9},
        elsewhere{.cached = {0, 20e-9}, .streamed = {0, 11e-9}};
    EXPECT_TRUE(far.were_far());
    EXPECT_FALSE(near.were_far());
    EXPECT_TRUE(elsewhere.were_far());
    EXPECT_EQ(far.of_pulled().cached.line_seconds, 10e-9);
    EXPECT_EQ(near.of_pulled().cached.line_seconds, 3e-9);
    EXPECT_TRUE(streaming_pays(path::automatic, zen5_far.of_pulled(), 1 << 16)) << "a line that is pulled isn't moved";
}

TEST(Claims, PayUnlessSeenNotToBeClearlyFaster) {
    for (const double ratio : {0.0, 0.6, 0.85}) EXPECT_TRUE(costs{.claimed_ratio = ratio}.claims_pay()) << ratio;
    for (const double ratio : {0.95, 1.0, 1.2}) EXPECT_FALSE(costs{.claimed_ratio = ratio}.claims_pay()) << ratio;
}

TEST(JointCopies, PayFromTheMeasuredSizeOnIfClearlyFaster) {
    const costs c = quiet().seen;
    costs close = c;
    close.joint_seconds = c.alone_seconds / 1.05;

    EXPECT_TRUE(joint_pays(path::automatic, c, joint_bytes));
    EXPECT_TRUE(joint_pays(path::packed, c, joint_bytes)) << "which concerns ghosts in fields only";
    EXPECT_FALSE(joint_pays(path::automatic, c, joint_bytes - 1)) << "not measured";
    EXPECT_FALSE(joint_pays(path::automatic, close, joint_bytes));
    EXPECT_FALSE(joint_pays(path::automatic, {}, joint_bytes));
    EXPECT_FALSE(joint_pays(path::direct, c, joint_bytes));
    EXPECT_FALSE(joint_pays(path::streamed, c, joint_bytes));
    EXPECT_TRUE(joint_pays(path::joint, {}, 1));
    EXPECT_FALSE(joint_pays(path::joint, c, 0));
}

/// Whether they are depends on processors alone, and all ranks know the same times.
TEST(JointCopies, AreMeasuredWhereEveryRankHasACore) {
    job_options options;
    options.transports = {"shm"};
    for (const int own : {1, 0}) {
        std::vector<costs> seen(2);
        options.path = path::direct;
        run_threads(
            2,
            [&](const job& j) {
                const std::vector<int> usable = usable_processors();
                const auto rank = static_cast<std::size_t>(j.rank());
                j.core().processor = own != 0 || rank == 0 ? usable[rank % usable.size()] : -1;
                j.core().spin = spinning(j.options(), j.core().processor >= 0);
                seen[rank] = measured_costs(j);
            },
            options);
        const bool two = usable_processors().size() > 1;
        EXPECT_EQ(seen[0].alone_seconds > 0 && seen[0].joint_seconds > 0, own != 0 && two);
        EXPECT_EQ(seen[0].alone_seconds, seen[1].alone_seconds);
        EXPECT_EQ(seen[0].joint_seconds, seen[1].joint_seconds);
    }
}

TEST(AgreedCosts, AreBoundedWhereNoLineWasTimed) {
    measurement one_core{.seen = {.flag_seconds = 4e-3, .message_seconds = 4e-3}, .shares_memory = true};

    const costs c = agreed({one_core, one_core, one_core});

    EXPECT_EQ(c.flag_seconds, 2e-6);
    EXPECT_EQ(c.message_seconds, 5e-7);
    EXPECT_EQ(c.take_seconds, 0);
    EXPECT_EQ(c.cached_seconds(16384), 0); // nothing is streamed
}

/// Each waits for the other's time slices.
TEST(Costs, AFlagIsNoTimeSlice) {
    job_options options;
    options.transports = {"shm"};
    options.path = path::direct;
    for (const bool own_core : {true, false})
        run_threads(
            2,
            [&](const job& j) {
                const std::vector<int> before = usable_processors();
                EXPECT_TRUE(bind_to({before.data(), 1}));
                j.core().processor = own_core ? before[0] : -1;
                j.core().spin = spinning(j.options(), own_core);
                const double flag = measured_costs(j).flag_seconds;
                EXPECT_GT(flag, 0);
                EXPECT_LE(flag, 2e-6);
                bind_to(before);
            },
            options);
}

/// The costs of lines as known to rank 0, if rank r is bound to processor bound[r] and none has one of its own.
costs of_bound_ranks(const std::vector<int>& bound) {
    job_options options;
    options.transports = {"shm"};
    options.path = path::direct;
    options.deadline = std::chrono::seconds(20);
    std::vector<costs> seen(bound.size());
    run_threads(
        static_cast<int>(bound.size()),
        [&](const job& j) {
            const auto rank = static_cast<std::size_t>(j.rank());
            const std::vector<int> before = usable_processors();
            EXPECT_TRUE(bind_to({&bound[rank], 1}));
            j.core().processor = -1;
            j.core().spin = spinning(j.options(), false);
            seen[rank] = measured_costs(j);
            EXPECT_EQ(usable_processors(), (std::vector{bound[rank]}));
            bind_to(before);
        },
        options);
    for (const costs& c : seen) EXPECT_EQ(c.cached.line_seconds, seen[0].cached.line_seconds);
    return seen[0];
}

TEST(Costs, RanksBoundToOneProcessorTakeNoLines) {
    const int one = usable_processors()[0];

    EXPECT_EQ(of_bound_ranks({one, one, one}).take_seconds, 0);
}

TEST(Costs, RanksBoundInBlocksMeasureBetweenTheFirstTwoProcessors) {
    const std::vector<int> usable = usable_processors();
    const int one = usable[0], other = usable.back();
    if (one == other) GTEST_SKIP() << "a machine of one processor has no blocks";
    for (const std::vector<int>& bound :
         {std::vector{one, one, other, other}, {one, one, other}, {one, other, other}, {one, one, one, other, other}}) {
        const costs c = of_bound_ranks(bound);
        EXPECT_GT(c.take_seconds, 0);
        EXPECT_GT(c.cached.seconds(16), 0);
        EXPECT_GT(c.streamed.seconds(16), 0);
    }
}

} // namespace
