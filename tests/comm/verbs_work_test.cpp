// SPDX-License-Identifier: Apache-2.0
// What transport `verbs` asks of a device, counted where ibv_post_send and its companions are. Needs no device.
#include "verbs_loop_device.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace {

using namespace halocline::comm;
using namespace halocline_test;

/// Both ends send and take epochs 1 to `count`; the payload is compared.
void exchange(loop_pair& pair, std::size_t bytes, std::uint64_t count) {
    for (std::uint64_t k = 1; k <= count; ++k) {
        for (verbs_channel* c : {&pair.to, &pair.from}) {
            ASSERT_TRUE(k == 1 || c->sent(k - 1));
            std::memset(c->target(k), static_cast<int>(k + (c == &pair.to)), bytes);
            c->send(k, 0);
        }
        for (verbs_channel* c : {&pair.to, &pair.from}) {
            ASSERT_TRUE(c->arrived(k));
            ASSERT_TRUE(c->sent(k));
            ASSERT_EQ(c->check(k), status::ok) << c->trouble();
            const auto value = static_cast<std::byte>(k + (c == &pair.from));
            ASSERT_EQ(std::count(c->received(k), c->received(k) + bytes, value), static_cast<std::ptrdiff_t>(bytes));
        }
    }
}

TEST(VerbsWork, ASmallMessageIsOneInlineWriteAndEvery16thIsSignalled) {
    loop_pair pair(64, {});
    exchange(pair, 64, 160);
    EXPECT_EQ(posted.send_calls, 2 * 160u);
    EXPECT_EQ(posted.writes, 2 * 160u);
    EXPECT_EQ(posted.with_immediate, 2 * 160u);
    EXPECT_EQ(posted.inlined, 2 * 160u);
    EXPECT_EQ(posted.signalled, 2 * 160u / 16);
    EXPECT_EQ(posted.bytes, 2 * 160u * (32 + 64)); // label and payload, once
}

TEST(VerbsWork, AMessageThatIsNotInlineIsOneSignalledWrite) {
    loop_pair pair(4096, {});
    exchange(pair, 4096, 32);
    EXPECT_EQ(posted.send_calls, 2 * 32u);
    EXPECT_EQ(posted.writes, 2 * 32u);
    EXPECT_EQ(posted.inlined, 0u);
    EXPECT_EQ(posted.signalled, 2 * 32u);
}

TEST(VerbsWork, AMessageInPiecesIsOneCallAndConsumesOneReceive) {
    verbs_options options;
    options.largest_write = 4096;
    loop_pair pair(10'000, options);
    exchange(pair, 10'000, 8);
    EXPECT_EQ(posted.send_calls, 2 * 8u); // the pieces are chained
    EXPECT_EQ(posted.writes, 2 * 8u * 3);
    EXPECT_EQ(posted.with_immediate, 2 * 8u);
    EXPECT_EQ(posted.signalled, 2 * 8u);
}

TEST(VerbsWork, ReceivesArePostedInBatchesOf16) {
    loop_pair pair(64, {});
    exchange(pair, 64, 160);
    EXPECT_EQ(posted.receive_calls, 2 * 160u / 16);
    EXPECT_EQ(posted.receives, 2 * 160u);
}

TEST(VerbsWork, WhatHasArrivedIsSeenWithoutAPollOfTheQueue) {
    loop_pair pair(64, {});
    exchange(pair, 64, 1);
    const std::uint64_t polls = posted.polls;
    EXPECT_TRUE(pair.to.arrived(1));
    EXPECT_TRUE(pair.to.sent(1));
    EXPECT_EQ(posted.polls, polls);
}

} // namespace
