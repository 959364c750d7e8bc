// SPDX-License-Identifier: Apache-2.0
// Loops around calls that poll and don't wait (test(), probe()): they end when a rank has given up, and make progress
// if ranks share a core.
#include "contract/messages.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/messenger.hpp>
#include <halocline/comm/one_sided.hpp>
#include <halocline/comm/window.hpp>
#include <halocline_test/one_core.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory_resource>
#include <vector>

namespace {

using namespace halocline;
using namespace halocline_test;

TEST(Polling, EndsWhenARankGaveUp) {
    std::atomic<bool> over{false};
    const auto body = [&](const job& j) {
        channel_set set(j, ring(j, 256), {"ring", ""});
        messenger messages(j);
        const int peer = 1 - j.rank();
        std::pmr::vector<char> out(5000, 0, &j.memory()), in(5000, 0, &j.memory());
        connection c(j, peer);
        send_window<char> to(c, out);
        recv_window<char> from(c, in);
        c.connect();
        const std::vector<int> neighbours{peer};
        exposure exposed(j, neighbours, 100);
        global_sum sum(j, 1);
        if (j.rank() == 1) {
            j.abort("no more sites");
            over.wait(false); // a rank that leaves says farewell, which is not what is tested here
            throw error("no more sites");
        }
        while (!set.test(1)) {
        }
        EXPECT_NE(set.wait(1), status::ok);
        message_info info;
        while (messages.state() == status::ok) EXPECT_FALSE(messages.probe(any_source, any_tag, info));
        from.init();
        from.post();
        while (!from.test()) {
        }
        EXPECT_NE(from.wait(), status::ok);
        exposed.post();
        while (!exposed.test()) {
        }
        EXPECT_NE(exposed.state(), status::ok);
        double value = 1;
        sum.start({&value, 1});
        while (!sum.test()) {
        }
        EXPECT_NE(sum.finish({&value, 1}), status::ok);
        over = true;
        over.notify_one();
        throw error("told");
    };
    EXPECT_THROW(run_threads(2, body), error);
}

/// Two ranks on one core: a fruitless call yields it to the other rank, which would otherwise run a time slice later.
TEST(Polling, GivesAwayACoreThatRanksShare) {
    job_options options;
    options.spin_polls = 4; // as if ranks outnumbered cores
    constexpr int rounds = 100;
    const auto body = [](const job& j) {
        ASSERT_NO_FATAL_FAILURE(halocline_test::bind_to_first_core());
        messenger messages(j);
        const int peer = 1 - j.rank();
        std::byte byte{};
        std::uint64_t fruitless = 0;
        for (int n = 0; n < rounds; ++n) {
            if (j.rank() == 0) {
                ASSERT_EQ(messages.send({&byte, 1}, peer, n), status::ok);
            }
            message_info info;
            while (!messages.probe(peer, n, info)) {
                ASSERT_EQ(messages.state(), status::ok);
                ++fruitless;
            }
            ASSERT_EQ(messages.recv({&byte, 1}, peer, n), status::ok);
            if (j.rank() == 1) {
                ASSERT_EQ(messages.send({&byte, 1}, peer, n), status::ok);
            }
        }
        EXPECT_LT(fruitless / rounds, 1000u) << "a time slice has tens of thousands";
    };
    run_threads(2, body, options);
}

} // namespace
