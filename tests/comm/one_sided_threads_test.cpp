// SPDX-License-Identifier: Apache-2.0
// One-sided communication between ranks that are threads: what the thread sanitizer can judge.
#include "one_sided_bodies.hpp"

#include <halocline/comm/costs.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>

namespace {

using namespace halocline_test;

TEST(OneSidedThreads, Epochs) {
    for (const int ranks : {1, 2, 3}) run_threads(ranks, [](const job& j) { expect_epochs(j, 300); });
}
TEST(OneSidedThreads, OneWayEpochs) {
    for (const int ranks : {2, 4}) run_threads(ranks, [](const job& j) { expect_one_way_epochs(j, 300); });
}
TEST(OneSidedThreads, CallsOfAnotherTableAreTold) { run_threads(2, expect_calls_of_another_table_are_told); }
TEST(OneSidedThreads, SignalsFollowTheirBytes) { run_threads(3, expect_signals_follow_their_bytes); }
TEST(OneSidedThreads, PutsOfAnySizeArrive) { run_threads(2, expect_puts_of_any_size_arrive); }
TEST(OneSidedThreads, PutsThatAreStreamedArrive) {
    job_options options;
    options.path = path::streamed;
    run_threads(2, expect_puts_of_any_size_arrive, options);
}
/// A large put and a small one to the other rank, in epochs 1 to 12.
template <class Check>
void put_twice(const job& j, Check&& check) {
    const int peer = 1 - j.rank();
    std::vector<std::byte> large(32 * 1024), small(large.size() - 1);
    exposure e(j, std::span(&peer, 1), large.size() + small.size(), {"twice"});
    for (std::uint64_t k = 1; k <= 12; ++k) {
        std::fill(large.begin(), large.end(), static_cast<std::byte>(2 * k));
        std::fill(small.begin(), small.end(), static_cast<std::byte>(2 * k + 1));
        e.post();
        e.start();
        ASSERT_EQ(e.await(0), status::ok);
        ASSERT_EQ(e.put(0, large, 0), status::ok);
        ASSERT_EQ(e.put(0, small, large.size()), status::ok);
        ASSERT_EQ(e.complete(), status::ok);
        ASSERT_EQ(e.wait(), status::ok);
        EXPECT_TRUE(std::equal(large.begin(), large.end(), e.memory().begin())) << k;
        EXPECT_TRUE(std::equal(small.begin(), small.end(), e.memory().begin() + 32 * 1024)) << k;
        check(k, e.counts().streamed);
    }
    j.barrier();
}
TEST(OneSidedThreads, LargePutsAreStreamedWhereTheJobAsksForIt) {
    for (const path wish : {path::streamed, path::direct}) {
        job_options options;
        options.path = wish;
        run_threads(
            2,
            [&](const job& j) {
                put_twice(j, [&](std::uint64_t k, std::uint64_t streamed) {
                    EXPECT_EQ(streamed, wish == path::streamed ? k : 0) << "the large ones, or none";
                });
            },
            options);
    }
}
/// Streaming 32 KiB is slightly worse than not streaming; or, if `far`, much better. The first four looks find the
/// opposite.
TEST(OneSidedThreads, LargePutsFollowTheMachine) {
    constexpr std::uint64_t looks = 4;
    for (const bool far : {false, true}) {
        run_threads(2, [&](const job& j) {
            assume_costs(j, {.flag_seconds = 20e-9,
                             .message_seconds = 10e-9,
                             .cached = {20e-9, far ? 80e-9 : 8e-9},
                             .streamed = {300e-9, 8e-9},
                             .take_seconds = far ? 1.0 : 1e-12});
            put_twice(j, [&](std::uint64_t k, std::uint64_t streamed) {
                EXPECT_EQ(streamed, far ? std::min(k, looks - 1) : k - std::min(k, looks - 1)) << k;
            });
        });
    }
}
TEST(OneSidedThreads, CallsInOrder) {
    for (const int ranks : {1, 3}) run_threads(ranks, [](const job& j) { expect_calls_in_order(j, 300); });
}
/// A rank that waits for calls, or for room for its own ones, is not alone as long as calls arrive.
TEST(OneSidedThreads, TheDeadlineOfAWaitForCallsLimitsSilence) {
    job_options options;
    options.deadline = std::chrono::seconds(2);
    for (const bool for_room : {false, true}) {
        std::atomic<bool> full{!for_room};
        const auto body = [&](const job& j) {
            assume_costs(j, {}); // measuring them may take longer than the deadline
            constexpr int calls = 15;
            int came = 0;
            remote_functions table;
            const auto tick = table.add<int>("tick", [&](std::size_t, int) { ++came; });
            const int peer = 1 - j.rank();
            remote_calls r(j, std::span(&peer, 1), std::move(table), calls);
            if (j.rank() == 0) {
                while (for_room && r.try_call(0, tick, 0)) {
                }
                full = true;
                if (for_room) {
                    EXPECT_EQ(r.call(0, tick, 0), status::ok);
                }
                EXPECT_EQ(r.progress_until([&] { return came == calls; }), status::ok);
            } else {
                while (!full) std::this_thread::yield();
                for (int k = 0; k < calls; ++k) { // for one and a half times the deadline
                    std::this_thread::sleep_for(std::chrono::milliseconds(200));
                    EXPECT_TRUE(r.try_call(0, tick, k));
                }
                while (for_room && came <= calls) (void)r.progress();
            }
            j.barrier();
        };
        run_threads(2, body, options);
    }
}
/// Rank 2 calls rank 0 all the time, which waits for rank 1: in vain, and is told so.
TEST(OneSidedThreads, CallsOfOthersDoNotHideARankThatFails) {
    for (const bool for_room : {false, true}) { // in the mailbox of a rank that looks for no calls, until the deadline
        std::atomic<bool> over{false};
        const auto body = [&](const job& j) {
            assume_costs(j, {}); // measuring them may take longer than the deadline
            remote_functions table;
            int came = 0;
            const auto tick = table.add<int>("tick", [&](std::size_t, int) { ++came; });
            const std::array<int, 2> others{j.rank() == 0 ? 1 : 0, j.rank() == 2 ? 1 : 2};
            remote_calls r(j, others, std::move(table), 4);
            if (j.rank() == 0) {
                while (for_room && r.try_call(0, tick, 0)) {
                }
                EXPECT_NE(for_room ? r.call(0, tick, 0) : r.progress_until([] { return false; }), status::ok);
                EXPECT_GT(came, 0);
                over = true;
            } else if (j.rank() == 1 && !for_room) {
                std::this_thread::sleep_for(std::chrono::milliseconds(50));
                throw std::runtime_error("rank 1 fails");
            }
            while (!over) {
                std::this_thread::sleep_for(std::chrono::microseconds(200));
                if (j.rank() == 2) (void)r.try_call(0, tick, 0);
            }
        };
        job_options options;
        options.deadline = std::chrono::milliseconds(for_room ? 2'000 : 20'000); // 500 was too short on a busy machine
        if (for_room)
            run_threads(3, body, options);
        else
            EXPECT_THROW(run_threads(3, body, options), std::runtime_error);
    }
}
TEST(OneSidedThreads, BadInputIsTold) { run_threads(3, expect_bad_one_sided_input_is_told); }
TEST(OneSidedThreads, LeavingEndsWaits) { run_threads(2, expect_leaving_ends_waits); }

} // namespace
