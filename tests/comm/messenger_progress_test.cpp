// SPDX-License-Identifier: Apache-2.0
// Matched messages: what moves while their rank waits for something else, and what that costs its waits.
#include "messenger_bodies.hpp"

#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/global_sum.hpp>
#include <halocline_test/idle_barrier.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>
#include <vector>

namespace {

using namespace halocline_test::messages;
using halocline_test::idle_barrier;

constexpr std::size_t sizes[] = {0, 8, 100, 1024, 3000, 20'000, 300'000};

/// Waits of every kind that are not the messenger's own.
void wait_elsewhere(const job& j, global_sum& sum) {
    for (int i = 0; i < 20; ++i) {
        double one = 1;
        EXPECT_EQ(sum({&one, 1}), status::ok);
    }
    // Each rank waits for another one for a while.
    std::this_thread::sleep_for(std::chrono::milliseconds(2 * ((j.rank() + 1) % j.ranks())));
    j.barrier();
}

/// Over a network every wait polls for all messages, because libraries make progress only then.
TEST(MessengerBetweenRanks, OtherWaitsLookForMessagesOnlyWhileSomethingIsUnderWay) {
    if (!network().empty()) GTEST_SKIP() << "it is about messages within a node";
    on_ranks({2, 3}, [](const job& j) {
        messenger m(j);
        global_sum sum(j, 1);
        for (const std::size_t n : sizes) {
            bytes out(n, &j.memory()), in(n);
            ok_or_fail(m, m.sendrecv(out, next_rank(j), 5, in, rank_before(j), 5));
            message_request to_self;
            m.isend(to_self, out, j.rank(), 6);
            ok_or_fail(m, m.recv(in, j.rank(), 6));
            ok_or_fail(m, m.wait(to_self));
        }
        wait_elsewhere(j, sum); // until all have received
        const std::uint64_t before = m.counts().served;
        wait_elsewhere(j, sum);
        EXPECT_EQ(m.counts().served, before);

        const bytes out(100'000);
        bytes in(out.size());
        message_request receive;
        m.irecv(receive, in, rank_before(j), 7);
        idle_barrier meet(j);
        for (int k = 0; k < 5; ++k) { // a rank without a processor does not look
            meet();
            if (j.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
            j.barrier();
        }
        EXPECT_TRUE(j.rank() == 0 || m.counts().served > before);
        ok_or_fail(m, m.send(out, next_rank(j), 7));
        ok_or_fail(m, m.wait(receive));
        j.barrier();
    });
}

/// More than the ring holds. The receiver has nothing under way, so its waits look for messages only when asked.
TEST(MessengerBetweenRanks, ARankThatWaitsElsewhereMakesRoomForMessagesWithoutReceives) {
    on_ranks({2, 3}, [](const job& j) {
        messenger m(j);
        global_sum sum(j, 1);
        for (const std::size_t n : {std::size_t{0}, std::size_t{40}, std::size_t{41}, std::size_t{1024}}) {
            constexpr int flood = 200;
            bytes data(n);
            for (int i = 0; j.rank() == 0 && i < flood; ++i) {
                fill(data, 0, static_cast<std::uint64_t>(i));
                ok_or_fail(m, m.send(data, 1, 5));
            }
            wait_elsewhere(j, sum);
            for (int i = 0; j.rank() == 1 && i < flood; ++i) {
                ok_or_fail(m, m.recv(data, 0, 5));
                ASSERT_EQ(wrong(data, 0, static_cast<std::uint64_t>(i)), 0u);
            }
        }
        j.barrier();
    });
}

/// Its polls are few, so each counts.
TEST(MessengerProgress, AWaitThatSleepsServesMessagesEachTimeItWakesUp) {
    if (ranks_are_processes()) GTEST_SKIP() << "ranks as threads only: they don't spin in a barrier";
    run_threads(2, [](const job& j) {
        static std::atomic<std::uint64_t> looks; // of rank 1, at everything that its waits advance
        if (j.rank() == 1) looks = 0;
        channel_set other(j, std::span<const channel_request>(), {"other", ""});
        if (j.rank() == 1) other.work_in_every_wait(&looks, [](void*) { ++looks; });
        messenger m(j);
        bytes in(100);
        message_request receive;
        if (j.rank() == 1) m.irecv(receive, in, 0, 5);
        for (int wait = 0; j.rank() == 0 && looks < 60 && wait < 1000; ++wait)
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
        j.barrier();
        EXPECT_GE(looks, 60U); // most of them asleep
        EXPECT_TRUE(j.rank() == 0 || 4 * m.counts().served >= looks) << m.counts().served << " of " << looks;
        if (j.rank() == 0) ok_or_fail(m, m.send(in, 1, 5));
        ok_or_fail(m, m.wait(receive));
        j.barrier();
    });
}

/// The thread sanitizer sees two threads that move messages at once; here they would get into each other's way.
TEST(MessengerProgress, OfSeveralThreadsThatWaitForSumsOneServesMessages) {
    if (ranks_are_processes()) GTEST_SKIP() << "ranks as threads only: the sanitizer sees these";
    run_threads(2, [](const job& j) {
        constexpr std::size_t many = 50;
        messenger m(j);
        std::array<global_sum, 2> sums{global_sum(j, 1), global_sum(j, 1)};
        std::vector<message_request> receives(j.rank() == 1 ? many : 0);
        std::vector<bytes> in(receives.size(), bytes(20'000));
        for (std::size_t i = 0; i < receives.size(); ++i) m.irecv(receives[i], in[i], 0, static_cast<int>(i));

        bytes out(20'000, &j.memory());
        for (std::size_t i = 0; j.rank() == 0 && i < many; ++i) {
            fill(out, 0, i);
            ok_or_fail(m, m.send(out, 1, static_cast<int>(i))); // rank 1 takes it in its waits
        }
        {
            const auto add = [&](global_sum& sum) {
                for (int i = 0; i < 20; ++i) {
                    double one = 1;
                    EXPECT_EQ(sum({&one, 1}), status::ok);
                }
            };
            const std::jthread other([&] { add(sums[0]); });
            add(sums[1]);
        }

        ok_or_fail(m, m.wait_all(receives));
        for (std::size_t i = 0; i < receives.size(); ++i) EXPECT_EQ(wrong(in[i], 0, i), 0U) << i;
        j.barrier();
    });
}

/// Of messages that are there at once, or for which there is room, every 32nd gives the rank's other objects a chance.
TEST(MessengerBetweenRanks, MessagesWithoutWaitsDoNotKeepOtherObjectsFromTheirWork) {
    if (!network().empty()) GTEST_SKIP() << "it is about messages within a node";
    on_ranks({2}, [](const job& j) {
        constexpr int many = 40; // fewer than the ring holds
        int steps = 0;
        channel_set other(j, std::span<const channel_request>(), {"other", ""});
        other.work_in_every_wait(&steps, [](void* n) { ++*static_cast<int*>(n); });
        messenger m(j);
        idle_barrier meet(j);
        meet();
        steps = 0;
        for (int i = 0; j.rank() == 0 && i < many; ++i) ok_or_fail(m, m.send({}, 1, 5));
        EXPECT_TRUE(j.rank() != 0 || steps > 0);
        meet();
        steps = 0;
        for (int i = 0; j.rank() == 1 && i < many; ++i) ok_or_fail(m, m.recv({}, 0, 5));
        EXPECT_TRUE(j.rank() != 1 || steps > 0);
        meet();
        j.barrier();
    });
}

/// The peer's own message needs a call of this rank, whose frames are always full of pieces.
TEST(MessengerOverNetwork, CallsGoAheadOfAStream) {
    on_ranks({}, [](const job& j) {
        messenger m(j, {.direct_bytes = std::size_t{1} << 30}); // everything in pieces
        constexpr std::size_t under_way = 4, n = 400'000;
        constexpr int begin = 5, most = 300; // without an end it would be all of them
        bytes data(n), other(n);
        message_request of_other;
        if (j.rank() == 0) {
            m.irecv(of_other, other, 1, 6);
            std::array<message_request, under_way> sends;
            int sent = 0;
            for (; sent < most && !of_other.done(); ++sent) {
                message_request& r = sends[static_cast<std::size_t>(sent) % under_way];
                ok_or_fail(m, m.wait(r));
                m.isend(r, data, 1, 5);
            }
            ok_or_fail(m, m.wait_all(sends));
            ok_or_fail(m, m.send({}, 1, 8));
            EXPECT_LT(sent, most) << "the other one has still not come";
        } else if (j.rank() == 1) {
            message_request end;
            m.irecv(end, {}, 0, 8);
            std::array<message_request, under_way> receives; // all at once into the same memory, which nobody reads
            for (int i = 0; !end.done(); ++i) {
                message_request& r = receives[static_cast<std::size_t>(i) % under_way];
                const std::array<message_request*, 2> either{&r, &end};
                ok_or_fail(m, m.wait_any(either));
                if (r.done()) m.irecv(r, data, 0, 5);
                if (i == begin) m.isend(of_other, other, 0, 6);
            }
        }
        ok_or_fail(m, m.wait(of_other));
        j.barrier();
    });
}

/// Its destruction waits for bytes that are on their way, however long that takes, as long as they move.
TEST(MessengerDeadline, IsExtendedForAReceiveThatIsDestroyedOverANetwork) {
    if (network().empty()) GTEST_SKIP() << "within a node nobody waits";
    on_ranks({}, [](const job& j) {
        messenger m(j);
        const auto deadline = j.options().deadline;
        ASSERT_LE(deadline, std::chrono::seconds(5)) << "this would take too long";
        constexpr std::size_t looks = 20, bytes_per_look = 512 * 1024; // two pieces over a TCP socket
        std::vector<std::byte> data(looks * bytes_per_look);
        if (j.rank() == 0) {
            message_request send;
            m.isend(send, data, 1, 5);
            while (!m.test(send)) std::this_thread::sleep_for(2 * deadline / looks);
            EXPECT_EQ(m.state(), status::ok) << m.pending();
        } else if (j.rank() == 1) {
            const auto begin = std::chrono::steady_clock::now();
            {
                message_request receive;
                m.irecv(receive, data, 0, 5);
                while (m.counts().called == 0) (void)m.test(receive);
            }
            EXPECT_GT(std::chrono::steady_clock::now() - begin, deadline) << "it went on before all had arrived";
        }
        j.barrier();
    });
}

/// The deadline limits silence. The sender looks seldom, and its message needs many looks, because it goes piece by
/// piece through its slab.
TEST(MessengerDeadline, IsExtendedByEachPieceOfALargeMessage) {
    if (!network().empty()) GTEST_SKIP() << "it is about copies within a node";
    ASSERT_TRUE(ranks_are_processes());
    on_ranks({}, [](const job& j) {
        messenger m(j, {.read_processes = false});
        const auto deadline = j.options().deadline;
        ASSERT_LE(deadline, std::chrono::seconds(5)) << "this would take too long";
        constexpr std::size_t looks = 20, bytes_per_look = 128 * 1024;
        std::vector<std::byte> data(looks * bytes_per_look);
        if (j.rank() == 0) {
            fill(data, 0, 1);
            message_request send;
            m.isend(send, data, 1, 5);
            while (!m.test(send)) std::this_thread::sleep_for(2 * deadline / looks);
            EXPECT_EQ(m.state(), status::ok) << m.pending();
        } else if (j.rank() == 1) {
            ok_or_fail(m, m.recv(data, 0, 5));
            EXPECT_EQ(wrong(data, 0, 1), 0u);
            EXPECT_EQ(m.counts().staged, 1u);
        }
    });
}

} // namespace
