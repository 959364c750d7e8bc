// SPDX-License-Identifier: Apache-2.0
// A peer that is alive but silent. The deadline ends the job, and a rank that is still asleep then may be ended by its
// watchdog, whatever gtest would report: so this is a separate run, disabled in ordinary ones, and passes by what rank
// 0 prints.
#include "contender.hpp"
#include "messages.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

namespace {

using namespace halocline_test;
using clock_type = std::chrono::steady_clock;

TEST(Deadline, DISABLED_NamesASilentPeer) {
    job_options options = options_under_test();
    // Set-up on a busy or emulated machine must not exceed it.
    const bool takes_long = under_test().transport == "verbs" || under_test().transport == "mpi";
    options.deadline = std::chrono::seconds(takes_long ? 10 : 3);
    std::atomic<bool> over{false};
    const auto body = [&](const job& j) {
        ASSERT_EQ(j.ranks(), 2);
        channel_set set(j, ring(j, 64), {"ring", ""});
        if (j.rank() == 1) {
            const auto end = clock_type::now() + options.deadline + std::chrono::seconds(60);
            while (!over && clock_type::now() < end) std::this_thread::sleep_for(std::chrono::milliseconds(20));
            return;
        }
        const auto began = clock_type::now();
        set.for_each([](auto& c) { c.send(1, ticks()); });
        try {
            wait_for(j, set, 1);
            ADD_FAILURE() << "nobody had sent anything";
        } catch (const rank_failure& e) {
            const auto waited = clock_type::now() - began;
            EXPECT_EQ(e.why(), status::timed_out) << e.what();
            EXPECT_EQ(e.culprit(), 1) << e.what();
            EXPECT_EQ(e.operation(),
                      "'ring' epoch 1: high from rank 1 over " + std::string(under_test().transport) + " and 1 more");
            EXPECT_GE(waited, options.deadline - std::chrono::milliseconds(100));
            EXPECT_LT(waited, options.deadline + std::chrono::seconds(40));
        }
        if (!HasFailure()) std::printf("silent rank 1 is named, over %s\n", std::string(under_test().name).c_str());
        std::fflush(stdout); // the launcher may now end this rank too
        over = true;
    };
    if (thread_ranks() > 0) {
        run_threads(thread_ranks(), body, options);
    } else {
        body(job::from_environment(options));
    }
}

} // namespace
