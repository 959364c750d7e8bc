// SPDX-License-Identifier: Apache-2.0
// Matched messages: their limits in memory and in time.
#include "messenger_bodies.hpp"

#include <halocline_test/allocation_counter.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

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

TEST(Messenger, TakesMemoryOnlyForPeersOfTheNode) {
    constexpr std::size_t per_peer = 610'000; // link and outbox
    for (const int ranks : {1, 2, 3}) {
        run_threads(ranks, [&](const job& j) {
            const std::size_t before = j.memory().used();
            const messenger m(j, {});
            const auto peers = static_cast<std::size_t>(ranks - 1);
            EXPECT_LE(j.memory().used() - before, peers * per_peer);
            EXPECT_GE(j.memory().used() - before, peers * per_peer * 9 / 10);
        });
    }
}

/// As in MPI: whoever first wants the message that was sent last gets it.
TEST(MessengerBetweenRanks, HundredsOfLargeMessagesMayBeReceivedTheLastFirst) {
    on_ranks({2}, [](const job& j) {
        messenger m(j);
        constexpr int count = 300;
        for (const std::size_t n : {std::size_t{2000}, std::size_t{20'000}, std::size_t{200'000}}) {
            bytes data(n, &j.memory());
            if (j.rank() == 0) {
                fill(data, 0, n);
                std::vector<message_request> sends(count);
                for (int i = 0; i < count; ++i) m.isend(sends[static_cast<std::size_t>(i)], data, 1, i);
                ok_or_fail(m, m.wait_all(sends));
            } else if (j.rank() == 1) {
                for (int i = count - 1; i >= 0; --i) {
                    ok_or_fail(m, m.recv(data, 0, i));
                    ASSERT_EQ(wrong(data, 0, n), 0u) << "message " << i << " of " << n << " bytes";
                }
            }
            j.barrier();
        }
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
            j.barrier(); // until then nobody receives, however long this rank was off its core
            ok_or_fail(m, m.wait_all(requests));
        } else if (j.rank() == 1) {
            std::vector<message_request> hidden(1);
            m.irecv(hidden[0], {}, 0, 2);
            for (int tries = 0; m.counts().unexpected < 100 && tries < 200; ++tries)
                ASSERT_EQ(m.wait_all_for(hidden, std::chrono::milliseconds(60)), status::timed_out);
            ok_or_fail(m, m.send({}, 0, 3));
            // No more can arrive now.
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

/// All that its receiver keeps is used up. When one message has been received, another can be sent, even if nothing else
/// is due that could take this news along.
TEST(MessengerBetweenRanks, ASenderWithoutRoomContinuesAfterOneReceive) {
    on_ranks({2}, [](const job& j) {
        ASSERT_GE(j.ranks(), 2);
        struct flood {
            std::size_t room, bytes, messages;
        };
        for (const flood f : {flood{8, 8, 8}, flood{1024, 1100, messenger_options::most_large}}) {
            messenger m(j, {.unexpected = f.room});
            bytes data(f.bytes);
            if (j.rank() == 0) {
                std::vector<message_request> sends(f.messages + 1);
                for (std::size_t i = 0; i < f.messages; ++i) m.isend(sends[i], data, 1, 1);
                m.isend(sends.back(), data, 1, 2);
                ok_or_fail(m, m.wait_all(sends));
            } else if (j.rank() == 1) {
                for (message_info none; m.counts().unexpected < f.messages;) (void)m.probe(0, 3, none);
                ok_or_fail(m, m.recv(data, 0, 1));
                std::array<message_request, 1> behind;
                m.irecv(behind[0], data, 0, 2);
                EXPECT_EQ(m.wait_all_for(behind, std::chrono::seconds(20)), status::ok) << f.bytes << " bytes";
                for (std::size_t i = 1; i < f.messages; ++i) ok_or_fail(m, m.recv(data, 0, 1));
                ok_or_fail(m, m.wait_all(behind));
            }
            j.barrier();
        }
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
        steps(20); // nobody is still in its set-up
        if (j.rank() == 0) after = halocline_test::allocations();
        steps(1); // nobody continues before the count is taken
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
            constexpr auto longest = std::chrono::seconds(30); // far longer than any rank is kept off its core
            const auto since = std::chrono::steady_clock::now();
            EXPECT_EQ(m.start_all(sends, longest), status::ok);
            EXPECT_LT(std::chrono::steady_clock::now() - since, longest);
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
        // Within a node no wait occurs at all, so the limit may be longer than any rank is kept off its core.
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

        constexpr auto very_long = std::chrono::seconds(30);
        messenger patient(j, {.wait_on_send = very_long});
        if (j.rank() == 0) { // the receive is posted already
            ok_or_fail(patient, patient.recv({}, 1, 5));
            const auto since = std::chrono::steady_clock::now();
            patient.isend(r, data, 1, 6);
            EXPECT_LT(std::chrono::steady_clock::now() - since, very_long);
        } else if (j.rank() == 1) {
            patient.irecv(r, data, 0, 6);
            ok_or_fail(patient, patient.send({}, 0, 5));
        }
        ok_or_fail(patient, patient.wait(r));
        j.barrier();
    });
}

} // namespace
