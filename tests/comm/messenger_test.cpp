// SPDX-License-Identifier: Apache-2.0
// Matched messages: which message meets which receive.
#include "messenger_bodies.hpp"

#include <halocline/comm/costs.hpp>
#include <halocline/comm/global_sum.hpp>

#include <halocline_test/idle_barrier.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace {

using namespace halocline_test::messages;
using halocline_test::idle_barrier;

TEST(Messenger, EqualTagsKeepTheirOrder) {
    on_ranks({2, 3}, [](const job& j) {
        messenger m(j, {.synergistic_bytes = 1500});
        const int next = next_rank(j), before = rank_before(j);
        constexpr std::size_t at_once = 16;
        const std::size_t rounds = network().empty() ? 200 : 40;
        const auto size_of = [](std::uint64_t n) { return n * 97 % 2000; }; // all protocols in turn
        std::vector<bytes> out(at_once), in(at_once);
        for (auto* set : {&out, &in})
            for (bytes& b : *set) b = bytes(2000, &j.memory());
        for (std::uint64_t round = 0; round < rounds; ++round) {
            std::array<message_request, at_once> sends, receives;
            for (std::size_t i = 0; i < at_once; ++i) {
                const std::uint64_t n = round * at_once + i;
                const std::span<std::byte> message = std::span(out[i]).first(size_of(n));
                fill(message, j.rank(), n);
                m.isend(sends[i], message, next, 7);
            }
            for (std::size_t i = 0; i < at_once; ++i) m.irecv(receives[i], in[i], before, 7);
            ok_or_fail(m, m.wait_all(receives));
            ok_or_fail(m, m.wait_all(sends));
            for (std::size_t i = 0; i < at_once; ++i) {
                const std::uint64_t n = round * at_once + i;
                ASSERT_EQ(receives[i].info().bytes, size_of(n));
                ASSERT_EQ(wrong(std::span(in[i]).first(size_of(n)), before, n), 0u);
            }
        }
        j.barrier();
    });
}

TEST(Messenger, WildcardsTellSourceAndTag) {
    on_ranks({2, 4, 12}, [](const job& j) {
        messenger m(j);
        constexpr int each = 60;
        if (j.rank() == 0) {
            std::vector<int> seen(static_cast<std::size_t>(j.ranks()), 0);
            for (int i = 0; i < each * (j.ranks() - 1); ++i) {
                bytes in(3000, &j.memory());
                message_info info;
                ok_or_fail(m, m.recv(in, any_source, any_tag, &info));
                const int n = seen[info.source]++;
                ASSERT_EQ(info.tag, n); // in the order of its source
                ASSERT_EQ(info.bytes, static_cast<std::size_t>(n * 50));
                ASSERT_EQ(wrong(std::span(in).first(info.bytes), info.source, static_cast<std::uint64_t>(n)), 0u);
            }
        } else {
            for (int n = 0; n < each; ++n) {
                bytes out(static_cast<std::size_t>(n * 50), &j.memory());
                fill(out, j.rank(), static_cast<std::uint64_t>(n));
                ok_or_fail(m, m.send(out, 0, n));
            }
        }
        j.barrier();
    });
}

TEST(Messenger, ContextsAreApart) {
    on_ranks({2}, [](const job& j) {
        messenger m(j);
        const int peer = j.ranks() - 1 - j.rank();
        int one = 1, two = 2, got = 0;
        message_request a, b;
        m.isend(a, std::as_bytes(std::span(&one, 1)), peer, 3, 1);
        m.isend(b, std::as_bytes(std::span(&two, 1)), peer, 3, 2);
        ok_or_fail(m, m.recv(std::as_writable_bytes(std::span(&got, 1)), any_source, any_tag, nullptr, 2));
        EXPECT_EQ(got, 2);
        ok_or_fail(m, m.recv(std::as_writable_bytes(std::span(&got, 1)), any_source, any_tag, nullptr, 1));
        EXPECT_EQ(got, 1);
        j.barrier();
    });
}

TEST(Messenger, MessagesToSelfWaitForTheirReceive) {
    on_ranks({1, 2}, [](const job& j) {
        messenger m(j, {.unexpected = 2});
        for (const std::size_t n : {std::size_t{8}, std::size_t{1000}, std::size_t{300'000}}) {
            std::vector<bytes> out(4), in(4);
            std::array<message_request, 8> r;
            for (std::size_t i = 0; i < 4; ++i) {
                out[i] = bytes(n);
                in[i] = bytes(n);
                fill(out[i], j.rank(), i);
                m.isend(r[i], out[i], j.rank(), 1);
            }
            for (std::size_t i = 0; i < 4; ++i) m.irecv(r[4 + i], in[i], i % 2 ? any_source : j.rank(), 1);
            ok_or_fail(m, m.wait_all(r));
            for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(wrong(in[i], j.rank(), i), 0u);
        }
    });
}

TEST(Messenger, ProbeLooksWithoutTaking) {
    on_ranks({2}, [](const job& j) {
        messenger m(j);
        const int peer = j.ranks() - 1 - j.rank();
        bytes out(777, &j.memory()), in(777);
        message_request r;
        m.isend(r, out, peer, 4);
        message_info info;
        EXPECT_FALSE(m.probe(any_source, 5, info));
        while (!m.probe(any_source, any_tag, info)) std::this_thread::yield();
        EXPECT_EQ(info.source, peer);
        EXPECT_EQ(info.tag, 4);
        EXPECT_EQ(info.bytes, 777u);
        ok_or_fail(m, m.recv(in, info.source, info.tag));
        ok_or_fail(m, m.wait(r));
        j.barrier();
    });
}

/// A rank's part in its messages does not wait until it calls its messenger again.
TEST(MessengerBetweenRanks, MessagesMoveWhileTheOtherEndWaitsInABarrierOrASum) {
    on_ranks({2, 3}, [](const job& j) {
        messenger m(j);
        global_sum sum(j, 1);
        for (int round = 0; round < 20; ++round) {
            const auto wait_elsewhere = [&] {
                if (round % 2 == 0) return j.barrier();
                double one = 1;
                EXPECT_EQ(sum({&one, 1}), status::ok);
            };
            bytes large(1 << (15 + round % 6)), small(100);
            std::vector<message_request> requests(9); // more than there is room for
            if (j.rank() == 0) {
                m.irecv(requests[0], large, 1, 1);
                wait_elsewhere();
                ok_or_fail(m, m.wait(requests[0]));
                EXPECT_EQ(wrong(large, 1, static_cast<std::uint64_t>(round)), 0u);
                for (message_request& r : requests) m.isend(r, small, 1, 2);
                wait_elsewhere();
                ok_or_fail(m, m.wait_all(requests));
            } else if (j.rank() == 1) {
                fill(large, 1, static_cast<std::uint64_t>(round));
                ok_or_fail(m, m.send(large, 0, 1));
                wait_elsewhere();
                for (std::size_t i = 0; i < requests.size(); ++i) ok_or_fail(m, m.recv(small, 0, 2));
                wait_elsewhere();
            } else {
                wait_elsewhere();
                wait_elsewhere();
            }
        }
        j.barrier();
    });
}

TEST(MessengerBetweenRanks, TheLastMessageOfAStreamMayBeReceivedFirst) {
    on_ranks({2, 3}, [](const job& j) {
        constexpr int stream = 17; // the first, and as many as are copied for their receiver
        assume_costs(j, {});       // so that the first is not
        messenger m(j);
        bytes first(8192, &j.memory()), data(8192, &j.memory());
        message_request begun;
        for (int i = 0; i <= stream && j.rank() == 0; ++i) {
            bytes& values = i == 0 ? first : data;
            fill(values, 0, static_cast<std::uint64_t>(i));
            if (i == 0)
                m.isend(begun, values, 1, 1);
            else
                ok_or_fail(m, m.send(values, 1, i == stream ? 2 : 1));
        }
        if (j.rank() == 0) ok_or_fail(m, m.wait(begun));
        for (int i = stream, left = stream; left >= 0 && j.rank() == 1; i = stream - left--) {
            ok_or_fail(m, m.recv(data, 0, i == stream ? 2 : 1));
            EXPECT_EQ(wrong(data, 0, static_cast<std::uint64_t>(i)), 0u) << "message " << i;
        }
        j.barrier();
    });
}

TEST(Messenger, ReceivesInARowLeaveNoSendBehind) {
    ASSERT_TRUE(network().empty()) << "it is about rings in shared memory, whose room is known";
    on_ranks({2}, [](const job& j) {
        constexpr int more_than_room = 200, in_a_row = 48;
        idle_barrier meet(j);
        for (const bool kept : {false, true}) { // has what comes been taken in before?
            messenger m(j);
            bytes word(8, &j.memory());
            const bool sender = j.rank() == 0 && j.ranks() > 1, receiver = j.rank() == 1;
            std::vector<message_request> sends(sender ? more_than_room : 0);
            for (message_request& r : sends) m.isend(r, word, 1, 1);
            meet(); // a receiver that is sending meanwhile would take them in
            for (int i = 0; receiver && i < in_a_row; ++i) ok_or_fail(m, m.send(word, 0, 2));
            meet();
            message_info info;
            EXPECT_FALSE(sender && kept && m.probe(1, 3, info));
            meet();
            int received = 0;
            for (; receiver && m.probe(0, 1, info); ++received) ok_or_fail(m, m.recv(word, 0, 1));
            EXPECT_LT(received, more_than_room);
            meet();
            // None of these has to wait, but now there is room for more sends.
            for (int i = 0; sender && i < in_a_row; ++i) ok_or_fail(m, m.recv(word, 1, 2));
            meet();
            EXPECT_TRUE(!receiver || m.probe(0, 1, info)) << "after " << received;
            meet();
            for (; receiver && received < more_than_room; ++received) ok_or_fail(m, m.recv(word, 0, 1));
            ok_or_fail(m, m.wait_all(sends));
            j.barrier();
        }
    });
}

TEST(Messenger, AReceiveTakesNoMessageOfAnEarlierOne) {
    on_ranks({2}, [](const job& j) {
        messenger m(j);
        bytes first(8, &j.memory()), second(8, &j.memory());
        for (std::uint64_t n = 0; n < 100; ++n) {
            if (j.rank() == 0 && j.ranks() > 1) {
                fill(first, 0, 2 * n);
                fill(second, 0, 2 * n + 1);
                ok_or_fail(m, m.send(first, 1, 5));
                ok_or_fail(m, m.send(second, 1, 5));
                ok_or_fail(m, m.recv(second, 1, 6));
            } else if (j.rank() == 1) {
                message_request posted;
                m.irecv(posted, first, n % 2 == 0 ? 0 : any_source, 5);
                ok_or_fail(m, m.recv(second, 0, 5));
                ok_or_fail(m, m.wait(posted));
                ASSERT_EQ(wrong(first, 0, 2 * n), 0u);
                ASSERT_EQ(wrong(second, 0, 2 * n + 1), 0u);
                ok_or_fail(m, m.send(second, 0, 6));
            }
        }
        j.barrier();
    });
}

/// A wait for a receive polls for its message alone, unless others could take it first.
TEST(Messenger, WaitsInAnyOrderLeaveToEachReceiveItsMessage) {
    on_ranks({2, 3}, [](const job& j) {
        messenger m(j);
        std::vector<bytes> data;
        for (int i = 0; i < 3; ++i) data.emplace_back(700, &j.memory());
        const int next = next_rank(j), before = rank_before(j);
        for (std::uint64_t n = 0; n < 240 && j.ranks() > 1; ++n) {
            const std::size_t size = n % 3 == 0 ? 8 : 700;
            std::array<int, 3> order{0, 1, 2};
            for (std::uint64_t k = 0; k < n % 6; ++k) std::next_permutation(order.begin(), order.end());
            std::array<message_request, 3> receives;
            for (std::size_t i = 0; i < receives.size(); ++i) {
                const bool any = n / 6 % 4 == i; // or none of them
                m.irecv(receives[i], std::span(data[i]).first(size), any ? any_source : before, any ? any_tag : 5);
            }
            j.barrier(); // the first receives are posted before anything is sent
            for (std::uint64_t i = 0; i < receives.size(); ++i) {
                bytes out(size, &j.memory());
                fill(out, j.rank(), 3 * n + i);
                ok_or_fail(m, m.send(out, next, 5));
            }
            for (const int i : order) {
                if (n % 5 == 0)
                    while (!m.test(receives[i])) {
                    }
                ok_or_fail(m, m.wait(receives[i]));
            }
            for (std::uint64_t i = 0; i < receives.size(); ++i) {
                ASSERT_EQ(wrong(std::span(data[i]).first(size), before, 3 * n + i), 0u) << n << ", receive " << i;
                EXPECT_EQ(receives[i].info().source, before);
            }
        }
        j.barrier();
    });
}

TEST(Messenger, SendrecvExchangesWithOneOrTwoRanks) {
    on_ranks({2, 3}, [](const job& j) {
        messenger m(j);
        const int next = next_rank(j), before = rank_before(j);
        std::uint64_t number = 0;
        for (const std::size_t n : {0, 1, 40, 64, 1000, 1024, 1025, 16384, 100'000})
            for (int k = 0; k < 20; ++k) {
                bytes out(n, &j.memory()), in(n + 3, &j.memory());
                fill(out, j.rank(), ++number);
                message_info info;
                ok_or_fail(m, m.sendrecv(out, next, 7, in, k % 2 == 0 ? before : any_source, 7, &info));
                EXPECT_EQ(info.source, before);
                EXPECT_EQ(info.bytes, n);
                ASSERT_EQ(wrong(std::span(in).first(n), before, number), 0u) << n;
            }
        EXPECT_EQ(m.state(), status::ok);
        EXPECT_EQ(m.sendrecv({}, j.ranks(), 7, {}, 0, 7), status::misused);
        j.barrier();
    });
}

} // namespace
