// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/detail/work_driver.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace {

using halocline::comm::work_driver;

bool works_here(work_driver& w) {
    bool worked = false;
    w.work_in_wait([&] { worked = true; });
    return worked;
}

bool works_elsewhere(work_driver& w) {
    bool worked = false;
    std::thread([&] { worked = works_here(w); }).join();
    return worked;
}

TEST(WorkDriver, OnlyTheThreadThatTookOverLastWorksInItsWaits) {
    work_driver w;
    EXPECT_FALSE(works_here(w)) << "nobody drives";
    w.take_over();
    EXPECT_TRUE(works_here(w));
    EXPECT_TRUE(works_here(w));
    EXPECT_FALSE(works_elsewhere(w));
    std::thread([&] {
        w.take_over();
        EXPECT_TRUE(works_here(w));
    }).join();
    EXPECT_FALSE(works_here(w));
    w.take_over();
    w.give_up();
    EXPECT_FALSE(works_here(w));
}

TEST(WorkDriver, WorkMayTakeOverAndGiveUp) {
    work_driver w;
    w.take_over();
    w.work_in_wait([&] {
        w.take_over(); // as a call does that the work makes: it does not wait for itself
        EXPECT_FALSE(works_here(w)) << "it is being done";
    });
    EXPECT_TRUE(works_here(w));
    w.work_in_wait([&] { w.give_up(); });
    EXPECT_FALSE(works_here(w));
}

TEST(WorkDriver, ACallThatTakesOverBeginsAfterTheWaitThatWorks) {
    work_driver w;
    std::atomic<bool> working{false}, leave{false};
    int steps = 0; // not atomic: the thread sanitizer judges, too
    std::thread waits([&] {
        w.take_over();
        w.work_in_wait([&] {
            working = true;
            while (!leave) std::this_thread::yield();
            ++steps;
        });
    });
    while (!working) std::this_thread::yield();
    std::thread lets_go([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        leave = true;
    });
    w.take_over();
    EXPECT_EQ(steps, 1);
    EXPECT_TRUE(works_here(w));
    waits.join();
    lets_go.join();
}

TEST(WorkDriver, NoStepIsLostOrDoneTwice) {
    work_driver w;
    std::int64_t done = 0; // not atomic
    constexpr int calls = 5'000;
    std::atomic<int> turn{0};
    const auto be_thread = [&](int self) {
        std::int64_t own = 0;
        const auto step = [&] {
            ++done;
            ++own;
        };
        for (int k = 0; k < calls; ++k) {
            while (turn % 2 != self) {
                w.work_in_wait(step);
                std::this_thread::yield();
            }
            w.take_over();
            step();
            ++turn;
        }
        return own;
    };
    std::int64_t of_other = 0;
    std::thread other([&] { of_other = be_thread(1); });
    const std::int64_t own = be_thread(0);
    other.join();
    EXPECT_EQ(done, own + of_other);
}

} // namespace
