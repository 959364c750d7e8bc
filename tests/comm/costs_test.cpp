// SPDX-License-Identifier: Apache-2.0
// Costs are measured by all ranks together, whichever of them have a core to themselves.
#include "job/job_core.hpp"

#include <halocline/comm/costs.hpp>
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
                j.barrier(); // all have come here by the same calls
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

/// What this machine's other load adds is kept out of what is frozen: here each waits for the other's time slices.
TEST(Costs, AFlagBetweenCoresIsNoTimeSlice) {
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
                EXPECT_LE(flag, own_core ? 5e-7 : 5e-6);
                bind_to(before);
            },
            options);
}

/// What lines cost, as rank 0 knows it, where rank r is bound to processor bound[r] and none has one of its own.
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
    if (one == other) {
        std::puts("not on a machine of one processor");
        return;
    }
    for (const std::vector<int>& bound :
         {std::vector{one, one, other, other}, {one, one, other}, {one, other, other}, {one, one, one, other, other}}) {
        const costs c = of_bound_ranks(bound);
        EXPECT_GT(c.take_seconds, 0);
        EXPECT_GT(c.cached.seconds(16), 0);
        EXPECT_GT(c.streamed.seconds(16), 0);
    }
}

} // namespace
