// SPDX-License-Identifier: Apache-2.0
// Matched messages: memory, deadlines, and what ends a job.
#include "messenger_bodies.hpp"

#include <halocline_test/allocation_counter.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <thread>

namespace {

using namespace halocline_test::messages;

TEST(MessengerBetweenRanks, AFloodOfOtherTagsDoesNotHideAMessage) {
    on_ranks({2}, [](const job& j) {
        ASSERT_GE(j.ranks(), 2);
        constexpr int flood = 500;
        messenger m(j, {.unexpected = flood + 1});
        const int peer = j.ranks() - 1 - j.rank();
        if (j.rank() == 0) {
            for (int i = 0; i < flood; ++i) {
                message_request r;
                m.isend(r, std::as_bytes(std::span(&i, 1)), peer, 1);
                ASSERT_TRUE(!network().empty() || i >= 64 || r.done()); // buffered at once
                ok_or_fail(m, m.wait(r));
            }
            ok_or_fail(m, m.send({}, peer, 2));
        }
        if (peer == 0) {
            ok_or_fail(m, m.recv({}, 0, 2));
            for (int i = 0, got = -1; i < flood; ++i) {
                ok_or_fail(m, m.recv(std::as_writable_bytes(std::span(&got, 1)), 0, 1));
                ASSERT_EQ(got, i);
            }
        }
        j.barrier();
    });
}

TEST(MessengerBetweenRanks, AMessageThatIsLongerThanItsReceiveIsToldWithBothSizes) {
    on_ranks({2}, [](const job& j) {
        ASSERT_GE(j.ranks(), 2);
        for (int round = 0; round < 60; ++round) { // it may be found in any call
            const std::size_t room = 4, longer = (std::array<std::size_t, 3>{8, 5000, 100000})[round % 3];
            messenger m(j);
            const bool posted_first = round % 2 == 0;
            if (!posted_first) j.barrier();
            if (j.rank() == 0) {
                if (posted_first) std::this_thread::sleep_for(std::chrono::microseconds(100 * (round % 7)));
                const std::vector<std::byte> out(longer);
                ok_or_fail(m, m.send(out, 1, 7));
            } else if (j.rank() == 1) {
                std::vector<std::byte> in(longer, std::byte{9});
                EXPECT_EQ(m.recv(std::span(in).first(room), 0, 7), status::wrong_data);
                EXPECT_EQ(std::ranges::count(in, std::byte{9}), std::ptrdiff_t(longer)) << "nothing of it is written";
                EXPECT_EQ(m.pending(), "'messages': a receive of up to 4 bytes that got a message of " +
                                           std::to_string(longer) + " from rank 0, tag 7");
            }
            j.barrier();
        }
    });
}

TEST(Messenger, NoSuchRankOrTagIsMisuse) {
    on_ranks({1, 2}, [](const job& j) {
        const auto pending_after = [&](auto wrong_call) {
            messenger m(j);
            message_request r;
            wrong_call(m, r);
            EXPECT_TRUE(r.done());
            EXPECT_TRUE(m.test(r));
            EXPECT_EQ(m.wait(r), status::misused);
            return m.pending();
        };
        const int nobody = j.ranks();
        const std::string right = ": ranks are 0 to " + std::to_string(nobody - 1) + ", tags not negative";
        const std::string rank = " rank " + std::to_string(nobody) + ", tag 1" + right;
        EXPECT_EQ(pending_after([&](messenger& m, message_request& r) { m.isend(r, {}, nobody, 1); }),
                  "'messages': a send to" + rank);
        EXPECT_EQ(
            pending_after([&](messenger& m, message_request&) { EXPECT_EQ(m.send({}, nobody, 1), status::misused); }),
            "'messages': a send to" + rank);
        EXPECT_EQ(pending_after([&](messenger& m, message_request& r) { m.isend(r, {}, 0, -5); }),
                  "'messages': a send to rank 0, tag -5" + right);
        EXPECT_EQ(pending_after([&](messenger& m, message_request& r) { m.irecv(r, {}, nobody, 1); }),
                  "'messages': a receive from" + rank);
        constexpr int far = 1 << 24; // nothing of a rank's is there to be looked at
        EXPECT_EQ(
            pending_after([&](messenger& m, message_request&) { EXPECT_EQ(m.recv({}, far, 1), status::misused); }),
            "'messages': a receive from rank " + std::to_string(far) + ", tag 1" + right);
        EXPECT_EQ(pending_after([&](messenger& m, message_request&) {
                      message_info info;
                      EXPECT_FALSE(m.probe(-2, any_tag, info));
                  }),
                  "'messages': a receive from rank -2, any tag" + right);
        j.barrier();
    });
}

/// Else its first operation would be lost, and with it the list that it is in.
TEST(Messenger, ARequestThatIsUnderWayCannotBeUsedAgain) {
    on_ranks({1, 2}, [](const job& j) {
        std::array<std::byte, 8> in{};
        {
            messenger m(j);
            message_request r;
            m.irecv(r, in, j.rank(), 1);

            m.irecv(r, in, j.rank(), 2);

            EXPECT_EQ(m.state(), status::misused);
            EXPECT_EQ(m.pending(), "'messages': a receive from rank " + std::to_string(j.rank()) +
                                       ", tag 2, by a request that is under way already: it can be used again once it "
                                       "is done");
            m.isend(r, in, j.rank(), 1);
            EXPECT_FALSE(r.done()) << "the first one is as it was";
        }
        j.barrier();
    });
}

TEST(Messenger, ARankThatThereIsNotIsNotLookedUpAfterAFailureEither) {
    on_ranks({1, 2}, [](const job& j) {
        messenger m(j);
        const std::array<std::byte, 8> out{};
        std::array<std::byte, 4> in{};
        message_request send;
        m.isend(send, out, j.rank(), 1);
        ASSERT_EQ(m.recv(in, j.rank(), 1), status::wrong_data); // too long
        for (const int nobody : {-2, 1 << 24}) {
            message_info info;
            EXPECT_FALSE(m.probe(nobody, any_tag, info));
            EXPECT_EQ(m.recv(in, nobody, 1), status::wrong_data);
            EXPECT_EQ(m.send(out, nobody, 1), status::wrong_data);
        }
        EXPECT_EQ(m.state(), status::wrong_data);
        j.barrier();
    });
}

TEST(MessengerBetweenRanks, AFloodBeyondTheRoomStaysWithItsSender) {
    on_ranks({2}, [](const job& j) {
        ASSERT_GE(j.ranks(), 2);
        messenger m(j, {.unexpected = 100});
        constexpr std::size_t flood = 5000;
        if (j.rank() == 0) {
            std::vector<message_request> requests(flood + 1);
            std::vector<std::size_t> words(flood);
            for (std::size_t i = 0; i < flood; ++i) {
                words[i] = i;
                m.isend(requests[i], std::as_bytes(std::span(&words[i], 1)), 1, 1);
            }
            m.isend(requests[flood], {}, 1, 2);
            ok_or_fail(m, m.recv({}, 1, 3)); // there is no more room
            EXPECT_EQ(m.wait_all_for(requests, std::chrono::milliseconds(20)), status::timed_out);
            EXPECT_EQ(m.state(), status::ok);
            j.barrier(); // until then nobody receives, however long this rank was kept from its core
            ok_or_fail(m, m.wait_all(requests));
        } else if (j.rank() == 1) {
            std::vector<message_request> hidden(1);
            m.irecv(hidden[0], {}, 0, 2);
            for (int tries = 0; m.counts().unexpected < 100 && tries < 200; ++tries)
                ASSERT_EQ(m.wait_all_for(hidden, std::chrono::milliseconds(60)), status::timed_out);
            ok_or_fail(m, m.send({}, 0, 3));
            // No more may come now.
            EXPECT_EQ(m.wait_all_for(hidden, std::chrono::milliseconds(60)), status::timed_out);
            EXPECT_EQ(m.counts().unexpected, 100u);
            j.barrier();
            for (std::size_t i = 0, got = 0; i < flood; ++i) {
                ok_or_fail(m, m.recv(std::as_writable_bytes(std::span(&got, 1)), 0, 1));
                ASSERT_EQ(got, i);
            }
            ok_or_fail(m, m.wait_all(hidden));
        } else {
            j.barrier();
        }
        j.barrier();
    });
}

TEST(Messenger, NothingIsAllocatedAfterSetUp) {
    static std::atomic<std::uint64_t> before{0}, after{0};
    on_ranks({2}, [](const job& j) {
        messenger m(j);
        const int peer = j.ranks() - 1 - j.rank();
        bytes out(300'000, &j.memory()), in(300'000, &j.memory());
        const auto steps = [&](int count) {
            for (int i = 0; i < count; ++i)
                for (const std::size_t n :
                     {std::size_t{8}, std::size_t{200}, std::size_t{5000}, std::size_t{300'000}}) {
                    message_request a, b, c;
                    m.isend(a, std::span(out).first(n), peer, 1);
                    m.isend(c, std::span(out).first(n), peer, 2);
                    m.irecv(b, in, any_source, 2);
                    ok_or_fail(m, m.wait(b));
                    ok_or_fail(m, m.recv(in, peer, any_tag));
                    ok_or_fail(m, m.wait(a));
                    ok_or_fail(m, m.wait(c));
                }
        };
        steps(20);
        if (j.rank() == 0) before = halocline_test::allocations();
        steps(20); // nobody is in its set-up any more
        if (j.rank() == 0) after = halocline_test::allocations();
        steps(1); // neither goes on before the count is taken
        j.barrier();
    });
    EXPECT_EQ(before, after);
}

TEST(MessengerBetweenRanks, StartAllWaitsForReceiversAndNoLongerThanItsDeadline) {
    on_ranks({2}, [](const job& j) {
        ASSERT_GE(j.ranks(), 2);
        messenger m(j);
        bytes data(100'000, &j.memory()); // more than any frame takes
        if (j.rank() == 0) {
            fill(data, 0, 1);
            std::array<message_request, 3> sends;
            for (message_request& s : sends) m.isend(s, data, 1, 4);
            // Within a node a receiver needs nobody to get the message; over a network it has to call.
            const status expected = network().empty() ? status::ok : status::timed_out;
            EXPECT_EQ(m.start_all(sends, std::chrono::milliseconds(20)), expected);
            EXPECT_EQ(m.state(), status::ok);
            j.barrier();
            EXPECT_EQ(m.start_all(sends, std::chrono::seconds(20)), status::ok);
            ok_or_fail(m, m.wait_all(sends));
        } else {
            j.barrier();
            for (int i = 0; j.rank() == 1 && i < 3; ++i) {
                std::fill(data.begin(), data.end(), std::byte{0});
                ok_or_fail(m, m.recv(data, 0, 4));
                EXPECT_EQ(wrong(data, 0, 1), 0u);
            }
        }
        j.barrier();
    });
}

TEST(MessengerBetweenRanks, WaitOnSendEndsWithTheReceiversCallOrInTime) {
    on_ranks({2}, [](const job& j) {
        ASSERT_GE(j.ranks(), 2);
        // Within a node no wait is seen at all, so it may be one that no rank is kept from its core for.
        const auto longest = std::chrono::milliseconds(network().empty() ? 20'000 : 50);
        messenger m(j, {.wait_on_send = longest});
        bytes data(100'000, &j.memory()); // more than any frame takes
        message_request r;
        if (j.rank() == 0) {
            const auto since = std::chrono::steady_clock::now();
            m.isend(r, data, 1, 4);
            const auto took = std::chrono::steady_clock::now() - since;
            EXPECT_EQ(took >= longest, !network().empty()) << "waits for a receive over a network only";
        }
        j.barrier();
        if (j.rank() == 1) m.irecv(r, data, 0, 4);
        ok_or_fail(m, m.wait(r));
        if (j.rank() == 0) { // the receive is there already
            ok_or_fail(m, m.recv({}, 1, 5));
            m.isend(r, data, 1, 6);
        } else if (j.rank() == 1) {
            m.irecv(r, data, 0, 6);
            ok_or_fail(m, m.send({}, 0, 5));
        }
        ok_or_fail(m, m.wait(r));
        j.barrier();
    });
}

TEST(Messenger, ARequestMayBeDestroyedEarly) {
    on_ranks({2}, [](const job& j) {
        messenger m(j);
        const int peer = j.ranks() - 1 - j.rank();
        bytes data(100'000, &j.memory());
        {
            message_request posted, any, self;
            m.irecv(posted, data, peer, 1);
            m.irecv(any, data, any_source, 2);
            m.isend(self, data, j.rank(), 3);
        }
        j.barrier(); // what the peer sends now meets none of them
        int x = 5, y = 0;
        message_request r;
        m.isend(r, std::as_bytes(std::span(&x, 1)), peer, 1);
        ok_or_fail(m, m.recv(std::as_writable_bytes(std::span(&y, 1)), peer, 1));
        EXPECT_EQ(y, 5);
        message_info info;
        EXPECT_FALSE(m.probe(j.rank(), 3, info));
        j.barrier();
    });
}

/// A send that is destroyed when its receive has called for it, or will: that ends, and the job goes on.
TEST(MessengerOverNetwork, AReceiveWhoseSendIsWithdrawnIsAborted) {
    on_ranks({}, [](const job& j) {
        const int peer = j.rank() ^ 1;
        constexpr std::size_t n = 4 << 20;
        int aborted = 0;
        for (const std::size_t direct_bytes : {std::size_t{16} << 10, 2 * n}) { // written by the network; in pieces
            for (int round = 0; round < 12; ++round) {
                messenger m(j, {.frame_bytes = 16 << 10, .direct_bytes = direct_bytes});
                bytes data(n, &j.memory());
                if (peer < j.ranks() && j.rank() < peer) {
                    message_request send;
                    fill(data, j.rank(), 0);
                    m.isend(send, data, peer, 5);
                    if (round == 0) ok_or_fail(m, m.send({}, peer, 4));
                    for (int i = 1; i < round && !send.done(); ++i) (void)m.test(send);
                } else if (peer < j.ranks()) {
                    if (round == 0) ok_or_fail(m, m.recv({}, peer, 4)); // the announcement came before that
                    const status s = m.recv(data, peer, 5);
                    if (s == status::ok) {
                        EXPECT_EQ(wrong(data, peer, 0), 0u);
                    } else {
                        ++aborted;
                        EXPECT_EQ(s, status::aborted) << m.pending();
                        EXPECT_NE(m.pending().find("from rank " + std::to_string(peer) +
                                                   ", tag 5, whose message its sender withdrew"),
                                  std::string::npos)
                            << m.pending();
                    }
                }
                j.barrier(); // the sender's messenger is there until then
            }
        }
        if (peer < j.rank()) {
            EXPECT_GE(aborted, 2) << "at least those whose sender did nothing for them";
        }
    });
}

/// Within a node, where the receiver can't read its sender's memory: it would wait for copies in its slab.
TEST(MessengerBetweenProcesses, AReceiveThatNeedsCopiesOfAWithdrawnSendIsAborted) {
    on_ranks({}, [](const job& j) {
        messenger m(j, {.read_processes = false});
        const bytes out(1 << 20, std::pmr::new_delete_resource());
        bytes in(1 << 20, std::pmr::new_delete_resource());
        if (j.rank() == 0) {
            message_request send;
            m.isend(send, out, 1, 5);
        } else if (j.rank() == 1) {
            EXPECT_EQ(m.recv(in, 0, 5), status::aborted);
            EXPECT_NE(m.pending().find("its sender withdrew"), std::string::npos) << m.pending();
        }
        j.barrier();
    });
}

// Below: what ends a messenger or the job; ranks as threads only.

std::string failure_of(int ranks, int rank, const std::function<void(const job&)>& body) {
    std::string text;
    try {
        run_threads(ranks, [&](const job& j) {
            try {
                body(j);
            } catch (const std::exception& e) {
                if (j.rank() == rank) text = e.what();
                throw;
            }
        });
    } catch (const std::exception&) {
    }
    return text;
}

TEST(MessengerFailure, AMessageThatIsTooLongIsWrongData) {
    if (ranks_are_processes()) GTEST_SKIP() << "ranks as threads only";
    for (const std::size_t n : {std::size_t{72}, std::size_t{5000}, std::size_t{300'000}}) {
        const std::string text = failure_of(2, 1, [&](const job& j) {
            messenger m(j);
            bytes data(n, &j.memory());
            if (j.rank() == 0) ok_or_fail(m, m.send(data, 1, 5)); // its sender is let go
            if (j.rank() == 1) ok_or_fail(m, m.recv(std::span(data).first(64), 0, 5));
            j.barrier();
        });
        EXPECT_NE(
            text.find("a receive of up to 64 bytes that got a message of " + std::to_string(n) + " from rank 0, tag 5"),
            std::string::npos)
            << text;
    }
}

TEST(MessengerFailure, APeerThatClosesEndsTheWait) {
    if (ranks_are_processes()) GTEST_SKIP() << "ranks as threads only";
    const std::string text = failure_of(2, 0, [](const job& j) {
        {
            messenger m(j);
            if (j.rank() == 0) {
                std::array<message_request, 2> r;
                m.irecv(r[0], {}, 1, 6);
                m.irecv(r[1], {}, 1, 7);
                ok_or_fail(m, m.wait_all(r));
            }
        }
        j.barrier();
    });
    EXPECT_NE(text.find("a receive from rank 1, tag 6, and 1 more"), std::string::npos) << text;
    EXPECT_NE(text.find(": rank 1 (pid "), std::string::npos) << text;
    EXPECT_NE(text.find(") closed its end while"), std::string::npos) << text;
}

TEST(MessengerFailure, OptionsThatDifferAreOneError) {
    if (ranks_are_processes()) GTEST_SKIP() << "ranks as threads only";
    const std::string text = failure_of(
        2, 1, [](const job& j) { messenger m(j, {.unexpected = j.rank() == 0 ? std::size_t{10} : std::size_t{20}}); });
    EXPECT_NE(text.find("10 unexpected"), std::string::npos) << text;
    EXPECT_NE(text.find("20 unexpected"), std::string::npos) << text;
}

} // namespace
