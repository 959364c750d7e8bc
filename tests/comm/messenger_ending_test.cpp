// SPDX-License-Identifier: Apache-2.0
// Matched messages: peers that leave, and what ends a job. Ranks as threads only.
#include "messenger_bodies.hpp"

#include <halocline/comm/channel_set.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace halocline_test::messages;

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
            if (j.rank() == 0) ok_or_fail(m, m.send(data, 1, 5)); // its sender is released
            if (j.rank() == 1) ok_or_fail(m, m.recv(std::span(data).first(64), 0, 5));
            j.barrier();
        });
        EXPECT_NE(
            text.find("a receive of up to 64 bytes that got a message of " + std::to_string(n) + " from rank 0, tag 5"),
            std::string::npos)
            << text;
    }
}

/// Rank 1 sends and leaves between rank 0's look for messages and its look for peers that have left.
TEST(MessengerFailure, APeerThatLeavesBehindItsMessageDoesNotEndAWaitForAnotherToo) {
    if (ranks_are_processes()) GTEST_SKIP() << "ranks as threads only";
    struct departure {
        std::atomic<bool> go{false}, over{false};
        static void take(void* object) {
            auto& self = *static_cast<departure*>(object);
            self.go = true;
            self.go.notify_all();
            self.over.wait(false);
        }
    } departure;
    run_threads(3, [&](const job& j) {
        channel_set work(j, std::span<const channel_request>(), {"work", ""});
        {
            messenger m(j);
            if (j.rank() == 0) {
                std::array<message_request, 2> receives;
                m.irecv(receives[0], {}, 1, 5);
                m.irecv(receives[1], {}, 2, 5);
                work.work_in_every_wait(&departure, departure::take);
                EXPECT_EQ(m.wait_all(receives), status::ok) << m.pending();
            } else if (j.rank() == 1) {
                departure.go.wait(false);
                ok_or_fail(m, m.send({}, 0, 5));
            } else {
                departure.over.wait(false);
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
                ok_or_fail(m, m.send({}, 0, 5));
            }
        }
        if (j.rank() == 1) {
            departure.over = true;
            departure.over.notify_all();
        }
        j.barrier();
    });
}

/// The rank whose message a receive from any rank has met withdraws it and leaves, just before the wait looks for ranks
/// that have left: another one may still send.
TEST(MessengerFailure, ARankThatLeavesWithItsMessageDoesNotEndAReceiveFromAnyRank) {
    if (ranks_are_processes()) GTEST_SKIP() << "ranks as threads only";
    struct departure {
        std::atomic<bool> is_due{false}, go{false}, over{false};
        static void take(void* object) {
            auto& self = *static_cast<departure*>(object);
            if (!self.is_due.exchange(false)) return;
            self.go = true;
            self.go.notify_all();
            self.over.wait(false);
        }
    } departure;
    job_options options;
    options.path = path::streamed;
    run_threads(
        3,
        [&](const job& j) {
            channel_set work(j, std::span<const channel_request>(), {"work", ""});
            std::optional<messenger> m(j);
            bytes data(100'000, &j.memory());
            message_request r;
            if (j.rank() == 1) m->isend(r, data, 0, 5);
            j.barrier();
            if (j.rank() == 0) {
                m->irecv(r, data, any_source, 5);
                EXPECT_FALSE(m->test(r));
                EXPECT_EQ(m->counts().pushed, 1u) << "it has met the message, which its sender has not begun to copy";
                departure.is_due = true;
                work.work_in_every_wait(&departure, departure::take);
                EXPECT_EQ(m->wait_all_for({&r, 1}, std::chrono::nanoseconds(1)), status::timed_out) << m->pending();
            } else if (j.rank() == 1) {
                departure.go.wait(false);
                m.reset();
                departure.over = true;
                departure.over.notify_all();
            }
            j.barrier();
            if (j.rank() == 2) ok_or_fail(*m, m->send(std::span(data).first(8), 0, 5));
            if (j.rank() == 0) {
                EXPECT_EQ(m->wait(r), status::ok) << m->pending();
                EXPECT_EQ(r.info().source, 2);
            }
            j.barrier();
        },
        options);
}

/// The message arrives after probe() has looked, and is taken by the work of every wait, as over networks.
TEST(MessengerFailure, AMessageThatIsTooLongIsNotForgottenByAProbe) {
    if (ranks_are_processes()) GTEST_SKIP() << "ranks as threads only";
    std::atomic<bool> go{false}, sent{false};
    struct late_message {
        std::atomic<bool>&go, &sent;
        messenger* to = nullptr;
        message_request receive;
        static void come(void* object) {
            auto& self = *static_cast<late_message*>(object);
            messenger* const m = std::exchange(self.to, nullptr);
            if (!m) return;
            self.go = true;
            self.go.notify_one();
            self.sent.wait(false);
            while (!m->test(self.receive)) {
            }
        }
    };
    run_threads(2, [&](const job& j) {
        channel_set work(j, std::span<const channel_request>(), {"work", ""});
        late_message late{.go = go, .sent = sent, .receive = {}};
        messenger m(j);
        if (j.rank() == 0) {
            work.work_in_every_wait(&late, late_message::come);
            std::array<std::byte, 4> in{};
            message_info info;
            m.irecv(late.receive, in, 1, 7);
            late.to = &m;
            EXPECT_FALSE(m.probe(1, 8, info));
            EXPECT_EQ(m.wait(late.receive), status::wrong_data);
        } else {
            go.wait(false);
            const std::array<std::byte, 8> out{};
            ok_or_fail(m, m.send(out, 0, 7));
            sent = true;
            sent.notify_one();
        }
        j.barrier();
    });
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

/// As above, for the waits for one of several requests and for a message of any length.
TEST(MessengerFailure, APeerThatClosesEndsTheWaitForAnyRequestAndForAProbe) {
    if (ranks_are_processes()) GTEST_SKIP() << "ranks as threads only";
    for (const bool probes : {false, true}) {
        const std::string text = failure_of(2, 0, [&](const job& j) {
            {
                messenger m(j);
                if (j.rank() == 0) {
                    message_request r;
                    message_info info;
                    m.irecv(r, {}, 1, 6);
                    const std::array<message_request*, 2> some{nullptr, &r};
                    ok_or_fail(m, probes ? m.wait_probe(1, 8, info) : m.wait_any(some));
                }
            }
            j.barrier();
        });
        EXPECT_NE(text.find(probes ? "a receive from rank 1, tag 8" : "a receive from rank 1, tag 6"),
                  std::string::npos)
            << text;
        EXPECT_NE(text.find(") closed its end while"), std::string::npos) << text;
    }
}

/// Rank 1 never sends, but stays; rank 2 leaves: whichever of the requests is its, the wait can't be for both any more.
TEST(MessengerFailure, AnyOfSeveralPeersThatLeavesEndsTheWait) {
    if (ranks_are_processes()) GTEST_SKIP() << "ranks as threads only";
    for (const bool any : {true, false})
        for (const bool sends : {false, true}) {
            std::atomic<bool> over{false};
            const auto begin = std::chrono::steady_clock::now();
            const std::string text = failure_of(3, 0, [&](const job& j) {
                messenger m(j);
                const bytes data(100'000, &j.memory());
                if (j.rank() == 0) {
                    message_request of_1, of_2;
                    m.irecv(of_1, {}, 1, 6);
                    if (sends)
                        m.isend(of_2, data, 2, 7);
                    else
                        m.irecv(of_2, {}, 2, 7);
                    const std::array<message_request*, 4> some{nullptr, &of_1, nullptr, &of_2};
                    const std::array<message_request*, 2> both{&of_1, &of_2};
                    const status s = any ? m.wait_any(some) : m.wait_all(both);
                    over = true;
                    over.notify_all();
                    ok_or_fail(m, s);
                } else if (j.rank() == 1) {
                    over.wait(false);
                }
            });
            EXPECT_NE(text.find(std::string(sends ? "a send to" : "a receive from") + " rank 2, tag 7, and 1 more"),
                      std::string::npos)
                << text;
            EXPECT_NE(text.find(": rank 2 (pid "), std::string::npos) << text;
            EXPECT_NE(text.find(") closed its end while"), std::string::npos) << text;
            EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20)) << "not at the deadline";
        }
}

/// Also one that is made of waits each of which is too short to look for that.
TEST(MessengerFailure, APeerThatClosesEndsALoopOfShortWaits) {
    if (ranks_are_processes()) GTEST_SKIP() << "ranks as threads only";
    const std::string text = failure_of(2, 0, [](const job& j) {
        {
            messenger m(j);
            if (j.rank() == 0) {
                std::array<message_request, 1> r;
                m.irecv(r[0], {}, 1, 6);
                status s = status::timed_out;
                const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
                while (s == status::timed_out && std::chrono::steady_clock::now() < end)
                    s = m.wait_all_for(r, std::chrono::microseconds(50));
                ok_or_fail(m, s);
            }
        }
        j.barrier();
    });
    EXPECT_NE(text.find(") closed its end while"), std::string::npos) << text;
}

/// Behind as many large messages as may wait for their receives, a small one does not even leave.
TEST(MessengerFailure, ASendWithoutRoomSaysSo) {
    if (ranks_are_processes()) GTEST_SKIP() << "ranks as threads only";
    const std::string text = failure_of(2, 0, [](const job& j) {
        const bytes data(5000, &j.memory());
        {
            messenger m(j);
            if (j.rank() == 0) {
                std::vector<message_request> large(messenger_options::most_large);
                message_request behind;
                for (message_request& r : large) m.isend(r, data, 1, 6);
                m.isend(behind, {}, 1, 7);
                ok_or_fail(m, m.wait(behind));
            }
        }
        j.barrier();
    });
    EXPECT_NE(text.find("a send to rank 1, tag 7, for which there is no room until earlier ones are received"),
              std::string::npos)
        << text;
}

/// Rank 2's message completes the wait, even if rank 2 leaves behind it and rank 1 never sends.
TEST(MessengerFailure, APeerThatLeavesBehindItsMessageEndsAWaitForAnyWell) {
    if (ranks_are_processes()) GTEST_SKIP() << "ranks as threads only";
    for (int round = 0; round < 20; ++round) {
        std::atomic<bool> over{false};
        run_threads(3, [&](const job& j) {
            messenger m(j);
            if (j.rank() == 0) {
                message_request of_1, of_2;
                m.irecv(of_1, {}, 1, 6);
                m.irecv(of_2, {}, 2, 7);
                const std::array<message_request*, 2> both{&of_1, &of_2};
                EXPECT_EQ(m.wait_any(both), status::ok) << m.pending();
                EXPECT_TRUE(of_2.done());
                EXPECT_FALSE(of_1.done());
                over = true;
                over.notify_all();
            } else if (j.rank() == 1) {
                over.wait(false);
            } else {
                ok_or_fail(m, m.send({}, 0, 7));
            }
        });
    }
}

/// A receive from any rank can still get something as long as one other rank stays.
TEST(MessengerFailure, OnlyTheLastPeerThatClosesEndsAWaitForAnySource) {
    if (ranks_are_processes()) GTEST_SKIP() << "ranks as threads only";
    for (const bool probes : {false, true}) {
        std::atomic<bool> closed{false};
        const auto begin = std::chrono::steady_clock::now();
        const std::string text = failure_of(3, 0, [&](const job& j) {
            {
                messenger m(j);
                message_info info;
                if (j.rank() == 0) {
                    ok_or_fail(m, m.recv({}, any_source, 5));
                    ok_or_fail(m, probes ? m.wait_probe(any_source, 6, info) : m.recv({}, any_source, 6));
                } else if (j.rank() == 1) {
                    closed.wait(false);
                    std::this_thread::sleep_for(std::chrono::milliseconds(50));
                    ok_or_fail(m, m.send({}, 0, 5));
                }
            }
            if (j.rank() == 2) {
                closed = true;
                closed.notify_all();
            }
            j.barrier();
        });
        EXPECT_NE(text.find("a receive from any rank, tag 6"), std::string::npos) << text;
        EXPECT_NE(text.find(") closed its end while"), std::string::npos) << text;
        EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20)) << "not at the deadline";
    }
}

TEST(MessengerFailure, OptionsThatDifferAreOneError) {
    if (ranks_are_processes()) GTEST_SKIP() << "ranks as threads only";
    const std::string text = failure_of(
        2, 1, [](const job& j) { messenger m(j, {.unexpected = j.rank() == 0 ? std::size_t{10} : std::size_t{20}}); });
    EXPECT_NE(text.find("10 unexpected"), std::string::npos) << text;
    EXPECT_NE(text.find("20 unexpected"), std::string::npos) << text;
}

} // namespace
