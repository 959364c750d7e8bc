// SPDX-License-Identifier: Apache-2.0
// Messages that differ from what the plan says: a shim flips bits of what arrived, drops a message, sends one twice. A
// wait that succeeds means that the payload is that of this epoch; everything else is a bad status.
#include "contender.hpp"
#include "messages.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace {

using namespace halocline_test;

/// The label as stored in this rank's memory.
template <class Channel>
message_label& arrived_label(Channel& c, std::uint64_t epoch) {
    return const_cast<message_label&>(static_cast<const message_label&>(c.label(epoch)));
}

TEST(Label, EveryFlippedBitOfEpochPlanAndSizeIsWrongData) {
    on_every_rank([](const job& j) {
        channel_set set(j, ring(j, 64), {"ring", ""});
        set.for_each([](auto& c) { c.send(1, ticks()); });
        wait_for(j, set, 1);

        set.for_each([&](auto& c) {
            message_label& h = arrived_label(c, 1);
            for (int bit = 0; bit < 64; ++bit) {
                const std::uint64_t flip = std::uint64_t{1} << bit;
                h.epoch ^= flip;
                EXPECT_EQ(c.check(1), status::wrong_data) << "epoch, bit " << bit;
                h.epoch ^= flip;
                h.bytes ^= flip;
                EXPECT_EQ(c.check(1), status::wrong_data) << "bytes, bit " << bit;
                h.bytes ^= flip;
                if (bit >= 32) continue;
                h.plan_id ^= static_cast<std::uint32_t>(flip);
                EXPECT_EQ(c.check(1), status::wrong_data) << "plan, bit " << bit;
                h.plan_id ^= static_cast<std::uint32_t>(flip);
            }
            EXPECT_EQ(c.check(1), status::ok) << "and nothing else";
        });
        j.barrier(); // before anybody's farewell
    });
}

TEST(Label, TheOneOfTheEpochBeforeIsWrongData) {
    on_every_rank([](const job& j) {
        channel_set set(j, ring(j, 64), {"ring", ""});
        for (std::uint64_t k = 1; k <= 2; ++k) {
            set.for_each([&](auto& c) { c.send(k, ticks()); });
            wait_for(j, set, k);
        }
        set.for_each([&](auto& c) {
            arrived_label(c, 2).epoch = 1; // what a repeated message would carry
            EXPECT_EQ(c.check(2), status::wrong_data);
        });
        j.barrier();
    });
}

/// Rank 0 sends each of six epochs `times` times: 1 and 2 once, so that they arrive. If a later wait of the peer
/// succeeds, it has the right payload; it never succeeds where nothing was sent. Where all have sent, it ends.
template <class Times>
void expect_no_wrong_payload(const job& j, Times times) {
    const tape t(200);
    channel_set set(j, ring(j, 200), {"ring", ""});
    const auto arrives = [&](std::uint64_t k, std::chrono::milliseconds longest) {
        const auto end = std::chrono::steady_clock::now() + longest;
        while (!set.test(k) && std::chrono::steady_clock::now() < end) std::this_thread::yield();
        return set.test(k) && set.wait(k) == status::ok;
    };
    const bool hears_rank_0 = j.rank() == 1 || j.rank() == j.ranks() - 1;
    for (std::uint64_t k = 1; k <= 6; ++k) {
        set.for_each([&](auto& c) { fill(c, set, t, j.rank(), k); });
        for (int n = j.rank() == 0 ? times(k) : 1; n > 0; --n) set.for_each([&](auto& c) { c.send(k, ticks()); });
        const bool sent = times(k) > 0;
        const bool arrived = arrives(k, sent ? std::chrono::seconds(20) : std::chrono::milliseconds(200));
        if (k <= 2) {
            ASSERT_TRUE(arrived) << "epoch " << k << " on rank " << j.rank();
        } else if (sent) {
            EXPECT_TRUE(arrived || set.state() != status::ok) << "epoch " << k << " on rank " << j.rank();
        } else if (hears_rank_0) {
            EXPECT_FALSE(arrived) << "epoch " << k << " on rank " << j.rank();
        }
        if (!arrived) return; // the loss is detected
        EXPECT_EQ(wrong_messages(set, t, k), 0) << "epoch " << k << " on rank " << j.rank();
        if (k == 2) j.barrier(); // nobody detects a loss, and leaves, before that
    }
}

TEST(Label, ARepeatedMessageNeverPassesForTheNext) {
    if (under_test().transport == "mpi")
        GTEST_SKIP() << "MPI starts no request that is under way: nothing is sent twice";
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "a message that is sent twice races with the reader of the first";
#endif
    on_every_rank([](const job& j) {
        if (j.ranks() == 1) GTEST_SKIP() << "needs two ranks";
        expect_no_wrong_payload(j, [](std::uint64_t k) { return k == 3 ? 2 : 1; });
    });
}

TEST(Label, ADroppedMessageIsNotReplacedByALaterOne) {
    on_every_rank([](const job& j) {
        if (j.ranks() == 1) GTEST_SKIP() << "needs two ranks";
        expect_no_wrong_payload(j, [](std::uint64_t k) { return k == 3 ? 0 : 1; });
    });
}

} // namespace
