// SPDX-License-Identifier: Apache-2.0
// What plans report about themselves: times, counts, memory.
#include "small_job.hpp"

#include <halocline/halo/plan.hpp>
#include <halocline/halo/plan_statistics.hpp>
#include <halocline/halo/shell_plan.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace {

using namespace halocline;
using halocline::halo::plan_statistics;

TEST(PlanStatistics, AddUpAndLanesByTransport) {
    plan_statistics sum{1, 0.5, 1.5, 2.5, 3.5, 6, 8, 7, {{"shm", 1, 2, 3, 4, 5}}};

    sum += {10, 1, 2, 3, 4, 60, 80, 70, {{"verbs", 100, 200, 300, 400, 500}, {"shm", 10, 20, 30, 40, 50}}};

    EXPECT_EQ(sum.exchanges, 11U);
    EXPECT_EQ(sum.pack_seconds, 1.5);
    EXPECT_EQ(sum.wait_seconds, 3.5);
    EXPECT_EQ(sum.unpack_seconds, 5.5);
    EXPECT_EQ(sum.imbalance_seconds, 7.5);
    EXPECT_EQ(sum.path_changes, 66U);
    EXPECT_EQ(sum.pieces_helped, 88U);
    EXPECT_EQ(sum.waits_yielded, 77U);
    ASSERT_EQ(sum.by_transport.size(), 2U);
    const auto &shm = sum.by_transport[0], &verbs = sum.by_transport[1];
    EXPECT_EQ(shm.transport, "shm");
    EXPECT_EQ(shm.messages, 11U);
    EXPECT_EQ(shm.bytes, 22U);
    EXPECT_EQ(shm.writes, 33U);
    EXPECT_EQ(shm.receives, 44U);
    EXPECT_EQ(shm.completions, 55U);
    EXPECT_EQ(verbs.transport, "verbs");
    EXPECT_EQ(verbs.messages, 100U);
}

TEST(PlanStatistics, PackingOfSomeExchangesStandsForAll) {
    using clock = std::chrono::steady_clock;
    constexpr std::chrono::microseconds pack_time{100};
    const comm::job mock = comm::job::single({.transports = {"mock"}});
    halo::plan plan(mock, lattice::decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1}),
                    {.widths = {.low = {1, 0, 0, 0}, .high = {}}, .bytes_per_site = 8, .self_exchange = true});
    const auto exchange = [&](int times) {
        for (int i = 0; i < times; ++i) {
            plan.start([&](int, std::int64_t, std::int64_t, std::byte*) {
                for (const auto end = clock::now() + pack_time; clock::now() < end;) {
                }
            });
            plan.finish_or_throw();
        }
        return plan.statistics();
    };
    const double least = 0.9e-6 * static_cast<double>(pack_time.count()); // per exchange; the clocks differ a little

    const auto begin = clock::now();
    const double first = exchange(1).pack_seconds; // measured, not estimated
    const std::chrono::duration<double> took = clock::now() - begin;
    EXPECT_GE(first, least);
    EXPECT_LE(first, 1.1 * took.count());
    EXPECT_GE(exchange(20).pack_seconds, 21 * least);
    plan.reset_statistics();
    EXPECT_EQ(plan.statistics().pack_seconds, 0);
    EXPECT_GE(exchange(3).pack_seconds, 3 * least);
}

/// Its messages are zeros, which no checksum belongs to.
TEST(PlanStatistics, AMockIsNotCheckedForSums) {
    const comm::job mock = comm::job::single({.transports = {"mock"}, .checksums = true});
    halo::plan plan(mock, lattice::decomposition::even({4, 4, 4, 4}, {1, 1, 1, 1}),
                    {.bytes_per_site = 8, .self_exchange = true});
    plan.start([](int, std::int64_t, std::int64_t, std::byte*) {});
    EXPECT_EQ(plan.finish(), comm::status::ok);

    lattice::field<double> x(lattice::site_order::lexicographic({4, 1, 1, 1}), 1);
    halo::region_plan regions(mock, std::vector<halo::transfer>{{0, 0, {0}}}, std::vector<halo::transfer>{{0, 0, {1}}},
                              std::vector{halo::bind(x)});
    regions.start();
    EXPECT_EQ(regions.finish(), comm::status::ok);
}

TEST(PlanStatistics, MemoryDependsOnNeighboursNotOnRanks) {
    std::vector<std::size_t> slots, shells;
    for (const int ranks : {4, 8, 12}) {
        halocline_test::run(ranks, [&](const comm::job& j) { // a ring
            const auto cut = lattice::decomposition::even({4, 4, 4, 4 * ranks}, {1, 1, 1, ranks});
            const halo::plan plan(j, cut, {.bytes_per_site = 8});
            const auto order = lattice::site_order::lexicographic({4, 4, 4, 6});
            lattice::field<double> u(order, 1); // not in the slab, so messages go through slots
            const halo::shell_plan shell(j, cut, {.widths = {{0, 0, 0, 1}, {0, 0, 0, 1}}}, {halo::bind(u)});
            if (j.rank() > 0) return;
            slots.push_back(plan.slab_bytes());
            shells.push_back(shell.slab_bytes());
        });
    }
    constexpr std::size_t ghost_bytes = 2 * 64 * sizeof(double);
    for (const std::vector<std::size_t>& bytes : {slots, shells}) {
        EXPECT_GE(bytes[0], 2 * ghost_bytes) << "two slots";
        EXPECT_LE(bytes[0], 4 * ghost_bytes);
        EXPECT_EQ(bytes, std::vector<std::size_t>(3, bytes[0]));
    }
}

TEST(PlanStatistics, CountWaitsThatGaveTheirCoreAway) {
    constexpr std::uint64_t exchanges = 10;
    halocline_test::run(2, [&](const comm::job& j) {
        halo::plan plan(j, lattice::decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2}), {.bytes_per_site = 8});
        EXPECT_EQ(plan.statistics().waits_yielded, 0U);
        for (std::uint64_t k = 0; k < exchanges; ++k) {
            if (j.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20)); // longer than a wait polls
            plan.start([](int, std::int64_t, std::int64_t, std::byte*) {});
            plan.finish_or_throw();
        }
        const std::uint64_t yielded = plan.statistics().waits_yielded;
        if (j.rank() == 0) {
            EXPECT_GE(yielded, 1U);
        }
        EXPECT_LE(yielded, exchanges);

        plan.reset_statistics();
        EXPECT_EQ(plan.statistics().waits_yielded, 0U);
    });
}

TEST(PlanStatistics, CountTheMemoryInWhichMessagesAreStaged) {
    const auto cut = lattice::decomposition::even({4, 4, 4, 8}, {1, 1, 1, 2});
    constexpr std::size_t messages = 2, message_bytes = std::size_t{64} * 96 * 2, line = 64;
    halocline_test::run(2, [&](const comm::job& j) {
        const auto staging_of = [&](halo::path path) {
            return halo::plan(j, cut, {.bytes_per_site = 96, .fields = 2, .path = path}).staging_bytes();
        };

        EXPECT_EQ(staging_of(halo::path::direct), 0U);
        EXPECT_EQ(staging_of(halo::path::streamed), messages * (message_bytes + line));
    });
}

} // namespace
