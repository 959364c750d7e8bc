// SPDX-License-Identifier: Apache-2.0
// Matched messages: impossible calls, and messages that don't fit into their receives.
#include "messenger_bodies.hpp"

#include <halocline_test/refusal.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace halocline_test::messages;

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

TEST(Messenger, WaitsIgnoreNullPointers) {
    on_ranks({1, 2}, [](const job& j) {
        messenger m(j);
        message_request sending, receiving;
        std::array<std::byte, 3> in{};
        const std::array<std::byte, 3> out{std::byte{1}, std::byte{2}, std::byte{3}};
        const std::array<message_request*, 4> all{nullptr, &receiving, nullptr, &sending};
        const std::array<message_request*, 1> none{nullptr};

        m.irecv(receiving, in, j.rank(), 1);
        m.isend(sending, out, j.rank(), 1);

        EXPECT_EQ(m.wait_all(all), status::ok);
        EXPECT_TRUE(receiving.done() && sending.done());
        EXPECT_EQ(in, out);
        EXPECT_EQ(m.wait_all(none), status::ok);
        EXPECT_EQ(m.wait_any(none), status::ok);
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
        constexpr int far = 1 << 24; // a rank has nothing there to look at
        EXPECT_EQ(
            pending_after([&](messenger& m, message_request&) { EXPECT_EQ(m.recv({}, far, 1), status::misused); }),
            "'messages': a receive from rank " + std::to_string(far) + ", tag 1" + right);
        EXPECT_EQ(pending_after([&](messenger& m, message_request&) {
                      message_info info;
                      EXPECT_FALSE(m.probe(-2, any_tag, info));
                  }),
                  "'messages': a receive from rank -2, any tag" + right);
        EXPECT_EQ(pending_after([&](messenger& m, message_request&) {
                      message_info info;
                      EXPECT_EQ(m.wait_probe(nobody, 1, info), status::misused);
                  }),
                  "'messages': a receive from" + rank);
        j.barrier();
    });
}

/// Otherwise its first operation would be lost, and with it the list that it is in.
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
            EXPECT_EQ(m.wait_probe(nobody, any_tag, info), status::wrong_data);
            EXPECT_EQ(m.recv(in, nobody, 1), status::wrong_data);
            EXPECT_EQ(m.send(out, nobody, 1), status::wrong_data);
        }
        EXPECT_EQ(m.state(), status::wrong_data);
        j.barrier();
    });
}

/// With room for 2^60 the size of the memory for them would be computed modulo 2^64.
TEST(Messenger, RoomForNoneOrForMoreThanAnyMemoryHoldsIsRefused) {
    on_ranks({1, 2}, [](const job& j) {
        for (const std::size_t room : {std::size_t{0}, (std::size_t{1} << 32) + 1, std::size_t{1} << 60}) {
            const std::string text = halocline_test::refusal([&] { messenger(j, {.unexpected = room}); });
            EXPECT_NE(
                text.find("room for " + std::to_string(room) + " unexpected messages; 1 to 4294967296 are possible"),
                std::string::npos)
                << text;
        }
    });
}

} // namespace
