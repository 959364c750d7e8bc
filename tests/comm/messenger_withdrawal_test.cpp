// SPDX-License-Identifier: Apache-2.0
// Matched messages: requests that are destroyed before they are done, at either end and at both.
#include "messenger_bodies.hpp"

#include <halocline/comm/channel_set.hpp>
#include <halocline_test/idle_barrier.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace halocline_test::messages;
using halocline_test::idle_barrier;

constexpr std::uint64_t more_than_records = messenger_options::most_large + 36; // that a sender has for each peer

std::pmr::memory_resource* heap() { return std::pmr::new_delete_resource(); }

/// One more large message, from rank 0 to rank 1: both still work.
void expect_one_more(messenger& m, std::pmr::memory_resource* where) {
    bytes data(300'000, where);
    if (m.job().rank() == 0) {
        fill(data, 0, 77);
        ok_or_fail(m, m.send(data, 1, 6));
    } else if (m.job().rank() == 1) {
        ok_or_fail(m, m.recv(data, 0, 6));
        EXPECT_EQ(wrong(data, 0, 77), 0u);
    }
    m.job().barrier();
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
        j.barrier(); // what the peer sends now matches none of them
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

/// A send is destroyed whose receive has called for it, or will, or comes too late: the receive gets the next message.
TEST(MessengerOverNetwork, AReceiveWhoseSendIsWithdrawnGetsTheNextMessage) {
    on_ranks({}, [](const job& j) {
        const int peer = j.rank() ^ 1;
        constexpr std::size_t n = 4 << 20;
        std::uint64_t next = 0;
        for (const std::size_t direct_bytes : {std::size_t{16} << 10, 2 * n}) { // written by the network; in pieces
            for (int round = 0; round < 12; ++round) {
                messenger m(j, {.frame_bytes = 16 << 10, .direct_bytes = direct_bytes});
                bytes data(n, &j.memory());
                if (peer < j.ranks() && j.rank() < peer) {
                    {
                        message_request send;
                        fill(data, j.rank(), 0);
                        m.isend(send, data, peer, 5);
                        if (round == 0) ok_or_fail(m, m.send({}, peer, 4));
                        for (int i = 1; i < round && !send.done(); ++i) (void)m.test(send);
                    }
                    ok_or_fail(m, m.send(std::span(data).first(8), peer, 5));
                } else if (peer < j.ranks()) {
                    if (round == 0) ok_or_fail(m, m.recv({}, peer, 4)); // so the announcement has come
                    message_info info;
                    ok_or_fail(m, m.recv(data, round % 2 == 0 ? peer : any_source, 5, &info));
                    EXPECT_EQ(info.source, peer);
                    EXPECT_TRUE(info.bytes == n || info.bytes == 8) << info.bytes;
                    EXPECT_EQ(wrong(std::span(data).first(info.bytes), peer, 0), 0u);
                    next += info.bytes == 8;
                    if (info.bytes == n) ok_or_fail(m, m.recv(data, peer, 5));
                }
                j.barrier(); // the sender's messenger exists until then
            }
        }
        if (peer < j.rank()) {
            EXPECT_GE(next, 2u) << "at least where the sender did nothing for the first one";
        }
    });
}

/// The next one is large as well, and has been announced before the first is withdrawn.
TEST(MessengerBetweenRanks, AReceiveWhoseSendIsWithdrawnGetsTheNextAnnouncedMessage) {
    on_ranks({2}, [](const job& j) {
        constexpr std::size_t n = 1 << 20;
        bytes data(n, &j.memory());
        idle_barrier meet(j);
        for (const bool reads_processes : {true, false}) {
            messenger m(j, {.frame_bytes = 16 << 10, .read_processes = reads_processes});
            bytes withdrawn(n - 8, heap()), out(n, heap());
            fill(withdrawn, 0, 1);
            fill(out, 0, 2);
            for (int round = 0; round < 60; ++round) {
                const bool in_time = round % 12 == 0; // nothing is received before the first one is withdrawn
                if (j.rank() == 0) {
                    message_request next;
                    {
                        message_request send;
                        m.isend(send, withdrawn, 1, 5);
                        m.isend(next, out, 1, 5);
                        ok_or_fail(m, m.send({}, 1, 4));
                        for (int i = 0; i < round % 12 && !send.done(); ++i) (void)m.test(send);
                    }
                    if (in_time) meet([&] { (void)m.test(next); }); // MPI may send what was sent in a later call
                    ok_or_fail(m, m.wait(next));
                } else if (j.rank() == 1) {
                    ok_or_fail(m, m.recv({}, 0, 4)); // both announcements have come
                    if (in_time) meet();
                    message_info info;
                    ok_or_fail(m, m.recv(data, round % 2 == 0 ? 0 : any_source, 5, &info));
                    ASSERT_EQ(info.source, 0);
                    ASSERT_TRUE(info.bytes == n || (!in_time && info.bytes == n - 8)) << info.bytes << ", " << round;
                    if (info.bytes != n) { // received before it was withdrawn
                        ASSERT_EQ(wrong(std::span(data).first(n - 8), 0, 1), 0u) << round;
                        ok_or_fail(m, m.recv(data, 0, 5, &info));
                    }
                    ASSERT_EQ(info.bytes, n);
                    ASSERT_EQ(wrong(data, 0, 2), 0u) << round;
                } else if (in_time) {
                    meet();
                }
                j.barrier();
            }
        }
    });
}

/// Within a node, where the receiver can't read its sender's memory: it would wait for copies in its slab.
TEST(MessengerBetweenProcesses, AReceiveThatNeedsCopiesOfAWithdrawnSendGetsTheNextMessage) {
    on_ranks({}, [](const job& j) {
        messenger m(j, {.read_processes = false});
        const bytes out(1 << 20, std::pmr::new_delete_resource());
        bytes in(1 << 20, std::pmr::new_delete_resource());
        if (j.rank() == 0) {
            {
                message_request send;
                m.isend(send, out, 1, 5);
            }
            ok_or_fail(m, m.send(std::span(out).first(8), 1, 5));
        } else if (j.rank() == 1) {
            message_info info;
            ok_or_fail(m, m.recv(in, any_source, 5, &info));
            EXPECT_EQ(info.source, 0);
            EXPECT_EQ(info.bytes, 8u);
        }
        j.barrier();
    });
}

/// Rank 1 has met rank 0's message, which it can't copy alone, when that is withdrawn. Then rank 2 sends one. A receive
/// from any rank gets it; one from rank 0 waits for rank 0, also if its request was from any rank before.
void expect_a_receive_stays_what_it_was(const job& j) {
    ASSERT_GE(j.ranks(), 3);
    idle_barrier meet(j);
    messenger m(j, {.frame_bytes = 16 << 10, .read_processes = false});
    bytes data(1 << 20, heap());
    for (const bool from_any : {true, false}) {
        if (j.rank() == 0) {
            {
                message_request send;
                m.isend(send, data, 1, 5);
                meet();
                ok_or_fail(m, m.send({}, 1, 4)); // once it is there, the announcement is, too
                message_info info;
                meet([&] { (void)m.probe(1, 9, info); }); // MPI may send it in a later call
                meet();                                   // from now on this rank does nothing for it
                meet();
            }
            j.barrier(); // makes progress: over a network the receiver hears of it
            j.barrier();
            ok_or_fail(m, m.send(std::span(data).first(3), 1, 5));
        } else if (j.rank() == 1) {
            message_request receive, other;
            message_request& before = from_any ? other : receive;
            m.irecv(before, data, any_source, 4);
            meet();
            ok_or_fail(m, m.wait(before));
            meet();
            meet();
            m.irecv(receive, data, from_any ? any_source : 0, 5);
            meet();      // rank 0 withdraws
            j.barrier(); // rank 2 sends
            if (from_any) {
                ok_or_fail(m, m.wait(receive));
                EXPECT_EQ(receive.info().source, 2);
                j.barrier();
                ok_or_fail(m, m.recv(data, 0, 5));
            } else {
                for (message_info info; !m.probe(2, 5, info);) EXPECT_FALSE(receive.done());
                j.barrier();
                ok_or_fail(m, m.wait(receive));
                EXPECT_EQ(receive.info().source, 0);
                ok_or_fail(m, m.recv(data, 2, 5));
            }
        } else {
            for (int i = 0; i < 4; ++i) meet();
            if (j.rank() == 2) ok_or_fail(m, m.send(std::span(data).first(8), 1, 5));
            j.barrier();
            j.barrier();
        }
        j.barrier();
    }
}

TEST(MessengerOfThreeProcesses, AReceiveWhoseSendIsWithdrawnStaysWhatItWas) {
    on_ranks({}, expect_a_receive_stays_what_it_was);
}

/// Whatever way it would take, and although its receiver has not taken in its withdrawal, or not even the message.
TEST(MessengerBetweenRanks, AMessageWithdrawnBeforeABarrierIsNotReceivedAfterIt) {
    on_ranks({}, [](const job& j) {
        messenger m(j);
        const bool is_near = j.members()[j.rank() == 0 ? 1 : 0].transport == "shm";
        for (const std::size_t n : {std::size_t{5000}, std::size_t{300'000}, std::size_t{3} << 20}) {
            if (n < 100'000 && !is_near) continue; // it lies in a frame at once: there is nothing to withdraw
            bytes data(n, &j.memory());
            for (int round = 0; round < 20; ++round) {
                if (j.rank() == 0) {
                    std::ranges::fill(data, std::byte{1});
                    bool has_left = false; // as a copy: then there is nothing to withdraw either
                    {
                        message_request send;
                        m.isend(send, data, 1, 6);
                        if (round % 3 == 0) ok_or_fail(m, m.send({}, 1, 4));
                        has_left = send.done();
                    }
                    std::ranges::fill(data, std::byte{7}); // the program's again
                    j.barrier();
                    ok_or_fail(m, m.send(std::span(data).first(8), 1, 6));
                    ok_or_fail(m, m.send(std::as_bytes(std::span(&has_left, 1)), 1, 7));
                } else if (j.rank() == 1) {
                    if (round % 3 == 0) ok_or_fail(m, m.recv({}, 0, 4)); // keeps the message
                    j.barrier();
                    message_info info, probed;
                    if (round % 2 == 0) ok_or_fail(m, m.wait_probe(0, 6, probed));
                    ok_or_fail(m, m.recv(data, round % 2 == 0 ? 0 : any_source, 6, &info));
                    if (round % 2 == 0 && network().empty()) {
                        EXPECT_EQ(probed.bytes, info.bytes);
                    }
                    bool has_left = false;
                    ok_or_fail(m, m.recv(std::as_writable_bytes(std::span(&has_left, 1)), 0, 7));
                    ASSERT_EQ(info.bytes, has_left ? n : 8) << "of " << n << ", round " << round;
                    ASSERT_EQ(data[info.bytes - 1], has_left ? std::byte{1} : std::byte{7});
                    if (has_left) ok_or_fail(m, m.recv(data, 0, 6));
                } else {
                    j.barrier();
                }
                j.barrier();
            }
        }
    });
}

/// The sender has not noticed that its messages were received. There are fewer records than sends, which need one each.
TEST(MessengerBetweenRanks, RecordsInTheSlabOfWithdrawnSendsAreUsedAgain) {
    on_ranks({2}, [](const job& j) {
        for (std::pmr::memory_resource* where : {static_cast<std::pmr::memory_resource*>(&j.memory()), heap()}) {
            messenger m(j);
            bytes data(100'000, where);
            for (std::uint64_t round = 0; round < more_than_records; ++round) {
                std::array<message_request, 1> send;
                if (j.rank() == 0) {
                    fill(data, 0, round);
                    m.isend(send[0], data, 1, 5);
                    (void)m.wait_all_for(send, std::chrono::nanoseconds(1)); // so it is announced
                    ASSERT_EQ(m.state(), status::ok) << m.pending();
                }
                if (j.rank() == 1) {
                    ok_or_fail(m, m.recv(data, 0, 5));
                    ASSERT_EQ(wrong(data, 0, round), 0u) << round;
                }
                j.barrier();
            }
            expect_one_more(m, where);
        }
    });
}

/// Makes progress until this counter is there.
void await_count(messenger& m, std::uint64_t message_counts::*counter, std::uint64_t count) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    message_info info;
    while (m.counts().*counter < count && m.state() == status::ok && std::chrono::steady_clock::now() < limit)
        EXPECT_FALSE(m.probe(any_source, 9, info));
    ASSERT_EQ(m.counts().*counter, count);
}

/// Ranks 0 and 1 withdraw a thousand sends each that no receive has met: nothing of them stays at either end.
TEST(MessengerBetweenRanks, WithdrawnSendsThatNobodyReceivesFreeTheirRecords) {
    constexpr std::uint64_t at_once = 40, rounds = 25; // fewer than there are cells that a peer reports to be free
    on_ranks({2}, [](const job& j) {
        for (std::pmr::memory_resource* where : {static_cast<std::pmr::memory_resource*>(&j.memory()), heap()}) {
            messenger m(j, {.frame_bytes = 16 << 10});
            bytes data(100'000, where);
            const int peer = 1 - j.rank();
            if (j.rank() < 2) {
                for (std::uint64_t round = 1; round <= rounds; ++round) {
                    std::array<message_request, 2> came, gone; // words in both directions
                    m.irecv(came[0], {}, peer, 7);
                    m.irecv(gone[0], {}, peer, 8);
                    {
                        std::array<message_request, at_once> sends;
                        for (message_request& r : sends) m.isend(r, data, peer, 5);
                        await_count(m, &message_counts::unexpected, at_once * round);
                        m.isend(came[1], {}, peer, 7);
                        ok_or_fail(m, m.wait_all(came)); // one that is withdrawn before it is announced leaves nothing
                    }
                    await_count(m, &message_counts::withdrawn, at_once * round);
                    m.isend(gone[1], {}, peer, 8);
                    ok_or_fail(m, m.wait_all(gone)); // what is given back travels along
                }
                message_info info;
                EXPECT_FALSE(m.probe(any_source, any_tag, info));
            }
            j.barrier();
            if (j.rank() < 2) {
                bytes in(300'000, where);
                data.resize(300'000);
                fill(data, j.rank(), 3);
                std::array<message_request, 2> large;
                m.irecv(large[0], in, peer, 5);
                m.isend(large[1], data, peer, 5);
                ok_or_fail(m, m.wait_all(large));
                EXPECT_EQ(wrong(in, peer, 3), 0u);
            }
            j.barrier();
        }
    });
}

/// The receiver has room for fewer messages than are withdrawn before it looks, and its ring holds the notices behind
/// them.
TEST(MessengerBetweenRanks, WithdrawnSendsAreDiscardedWhereTheyFillTheRoomForUnexpectedMessages) {
    on_ranks({2}, [](const job& j) {
        messenger m(j, {.unexpected = 4, .frame_bytes = 16 << 10});
        bytes data(100'000, &j.memory());
        for (int round = 0; round < 20; ++round) {
            if (j.rank() == 0) {
                for (int i = 0; i < 10; ++i) {
                    message_request r;
                    m.isend(r, data, 1, 5);
                }
            }
            j.barrier();
            expect_one_more(m, &j.memory());
        }
    });
}

/// Wildcards and probes see only what was not withdrawn, in the order in which it was sent.
TEST(MessengerBetweenRanks, WhatIsWithdrawnLeavesTheOthersInOrder) {
    on_ranks({2}, [](const job& j) {
        messenger m(j, {.frame_bytes = 16 << 10});
        constexpr std::size_t n = 50'000;
        std::vector<bytes> data(4);
        for (std::size_t i = 0; i < data.size(); ++i) {
            data[i] = bytes(i == 1 ? 40 : n, &j.memory());
            fill(data[i], 0, i);
        }
        for (int round = 1; round <= 30; ++round) {
            if (j.rank() == 0) {
                std::array<message_request, 4> sends;
                std::optional<message_request> withdrawn[3];
                m.isend(sends[0], data[0], 1, 5);
                m.isend(withdrawn[0].emplace(), data[3], 1, 5);
                m.isend(sends[1], data[1], 1, 5);
                m.isend(withdrawn[1].emplace(), data[3], 1, 6);
                m.isend(withdrawn[2].emplace(), data[3], 1, 5);
                m.isend(sends[2], data[2], 1, 6);
                ok_or_fail(m, m.recv({}, 1, 7)); // all six are there
                for (const std::size_t i : {2u, 0u, 1u}) withdrawn[i].reset();
                ok_or_fail(m, m.recv({}, 1, 8)); // all three are discarded
                m.isend(sends[3], data[3], 1, 6);
                ok_or_fail(m, m.wait_all(sends));
            } else if (j.rank() == 1) {
                const auto k = static_cast<std::uint64_t>(round);
                await_count(m, &message_counts::arrived, 7 * k - 1);
                ok_or_fail(m, m.send({}, 0, 7));
                await_count(m, &message_counts::withdrawn, 3 * k);
                bytes in(n, &j.memory());
                const auto expect = [&](int from, int tag, int sent_tag, std::uint64_t number) {
                    message_info seen, got;
                    ok_or_fail(m, m.wait_probe(from, tag, seen));
                    ok_or_fail(m, m.recv(in, from, tag, &got));
                    EXPECT_EQ(got.source, 0);
                    EXPECT_EQ(got.tag, sent_tag);
                    EXPECT_EQ(seen.bytes, got.bytes);
                    ASSERT_EQ(got.bytes, data[number].size());
                    ASSERT_EQ(wrong(std::span(in).first(got.bytes), 0, number), 0u) << round;
                };
                if (round % 2 == 0) { // by tag, not in the order of arrival
                    expect(0, 6, 6, 2);
                    expect(any_source, 5, 5, 0);
                    expect(0, 5, 5, 1);
                } else {
                    expect(any_source, any_tag, 5, 0);
                    expect(any_source, any_tag, 5, 1);
                    expect(any_source, any_tag, 6, 2);
                }
                message_info info;
                EXPECT_FALSE(m.probe(any_source, any_tag, info));
                message_request next; // gets what is sent after it is posted, not what was withdrawn before
                m.irecv(next, in, any_source, any_tag);
                ok_or_fail(m, m.send({}, 0, 8));
                ok_or_fail(m, m.wait(next));
                EXPECT_EQ(wrong(in, 0, 3), 0u);
            }
        }
        j.barrier();
    });
}

/// The send is withdrawn before its receive is posted, and then the receive, before it can learn of that.
void expect_both_ends_may_give_up(const job& j, const messenger_options& options) {
    for (std::pmr::memory_resource* where : {static_cast<std::pmr::memory_resource*>(&j.memory()), heap()}) {
        messenger m(j, options);
        bytes data(300'000, where);
        for (std::uint64_t round = 0; round < more_than_records; ++round) {
            if (j.rank() == 0) {
                message_request send;
                m.isend(send, data, 1, 5);
                ok_or_fail(m, m.send({}, 1, 7)); // so the first one is on its way, too
            } else if (j.rank() == 1) {
                ok_or_fail(m, m.recv({}, 0, 7));
                message_request receive;
                m.irecv(receive, data, 0, 5);
            }
            j.barrier();
        }
        EXPECT_EQ(m.state(), status::ok) << m.pending();
        expect_one_more(m, where);
    }
}

TEST(MessengerBetweenRanks, BothEndsMayGiveUp) {
    on_ranks({2}, [](const job& j) {
        expect_both_ends_may_give_up(j, {});                               // over a network: written into memory
        expect_both_ends_may_give_up(j, {.direct_bytes = 1 << 30});        // over a network: in pieces
        expect_both_ends_may_give_up(j, {.synergistic_bytes = 64 * 1024}); // within a node: by both
    });
}

/// The receive waits for copies in the sender's slab, which it requested before the send is withdrawn.
TEST(MessengerBetweenProcesses, BothEndsMayGiveUpAMessageThatNeedsCopies) {
    on_ranks({}, [](const job& j) {
        messenger m(j, {.read_processes = false});
        bytes data(300'000, heap());
        idle_barrier meet(j);
        for (std::uint64_t round = 0; round < more_than_records; ++round) {
            std::optional<message_request> r(std::in_place);
            if (j.rank() == 0) m.isend(*r, data, 1, 5);
            meet();
            if (j.rank() == 1) {
                m.irecv(*r, data, 0, 5);
                EXPECT_FALSE(m.test(*r));
            }
            meet();
            if (j.rank() == 0 && round % 2 == 1) {
                EXPECT_FALSE(m.test(*r)); // copies the first pieces
            }
            meet();
            if (j.rank() == static_cast<int>(round / 2 % 2)) r.reset();
            meet();
            r.reset();
            meet();
        }
        EXPECT_EQ(m.state(), status::ok) << m.pending();
        expect_one_more(m, heap());
    });
}

/// Receives that have matched are destroyed, whatever their sender has done for them by then.
void expect_sends_end_whose_receives_are_withdrawn(const job& j, const messenger_options& options,
                                                   std::pmr::memory_resource* where) {
    constexpr std::size_t at_once = 56;
    messenger m(j, options);
    std::vector<bytes> data(at_once);
    for (bytes& b : data) b = bytes(100'000, where);
    for (std::uint64_t round = 0; round < 6; ++round) {
        // Otherwise the receives are posted first, and the peer makes progress while they are withdrawn.
        const bool sender_sleeps = round % 2 == 0;
        if (j.rank() == 0) {
            std::vector<message_request> sends(at_once);
            for (std::size_t i = 0; i < at_once; ++i) m.isend(sends[i], data[i], 1, 5);
            if (sender_sleeps) {
                ok_or_fail(m, m.recv({}, 1, 8));
                std::this_thread::sleep_for(std::chrono::milliseconds(50));
            }
            ok_or_fail(m, m.wait_all(sends));
            ok_or_fail(m, m.send({}, 1, 7));
        } else if (j.rank() == 1) {
            const auto take_what_comes = [&] {
                message_info info;
                const std::uint64_t all = (round + 1) * at_once + round; // each round ends with an empty one
                while (m.counts().arrived < all && m.state() == status::ok) (void)m.probe(0, 9, info);
            };
            if (sender_sleeps) {
                take_what_comes();
                ok_or_fail(m, m.send({}, 0, 8));
            }
            std::vector<std::optional<message_request>> receives(at_once);
            for (std::size_t i = 0; i < at_once; ++i) m.irecv(receives[i].emplace(), data[i], 0, 5);
            take_what_comes();
            for (std::size_t i = at_once; i-- > 0;) receives[i].reset(); // those that have not called yet come first
            ok_or_fail(m, m.recv({}, 0, 7));
        }
        EXPECT_EQ(m.state(), status::ok) << m.pending();
    }
    expect_one_more(m, where);
}

TEST(MessengerBetweenRanks, SendsEndWhoseReceivesAreWithdrawn) {
    on_ranks({2}, [](const job& j) {
        // The frames have no room for so many invitations while the sender does not answer.
        expect_sends_end_whose_receives_are_withdrawn(j, {.frame_bytes = 2048}, &j.memory());
        expect_sends_end_whose_receives_are_withdrawn(j, {.direct_bytes = 1 << 30}, &j.memory());
        expect_sends_end_whose_receives_are_withdrawn(j, {.read_processes = false}, heap());
    });
}

/// Two messages, each of which fills the staging area; the first is withdrawn once it lies there.
TEST(MessengerBetweenProcesses, AWithdrawnSendThatIsStagedIsNotOverwrittenByTheNext) {
    on_ranks({}, [](const job& j) {
        messenger m(j, {.read_processes = false});
        constexpr std::size_t n = 128 * 1024;
        bytes first(n, heap()), second(n, heap());
        idle_barrier meet(j);
        std::optional<message_request> a(std::in_place), b(std::in_place);
        message_info info;
        if (j.rank() == 0) {
            fill(first, 0, 1);
            fill(second, 0, 2);
            m.isend(*a, first, 1, 5);
            m.isend(*b, second, 1, 5);
        }
        meet();
        if (j.rank() == 1) {
            m.irecv(*a, first, 0, 5);
            m.irecv(*b, second, 0, 5);
            EXPECT_FALSE(m.test(*b)); // requests both
        }
        meet();
        if (j.rank() == 0) {
            EXPECT_FALSE(m.probe(1, 9, info)); // copies the first
            a.reset();
            EXPECT_FALSE(m.probe(1, 9, info));
        }
        meet();
        ok_or_fail(m, m.wait(*b));
        if (j.rank() == 1) {
            ok_or_fail(m, m.wait(*a));
            EXPECT_EQ(wrong(first, 0, 1), 0u);
            EXPECT_EQ(wrong(second, 0, 2), 0u);
        }
        meet();
    });
}

/// Its sender alone should copy, but has not begun to: nothing may be written any more, and the send ends.
TEST(MessengerWithdrawal, NothingIsPushedIntoAReceiveThatIsGone) {
    if (ranks_are_processes()) GTEST_SKIP() << "ranks as threads only";
    job_options options;
    options.path = path::streamed;
    run_threads(
        2,
        [](const job& j) {
            messenger m(j);
            bytes data(1 << 20, &j.memory());
            idle_barrier meet(j);
            message_request send;
            if (j.rank() == 0) m.isend(send, data, 1, 5);
            meet();
            if (j.rank() == 1) {
                std::fill(data.begin(), data.end(), std::byte{0xee});
                message_request receive;
                m.irecv(receive, data, 0, 5);
                EXPECT_FALSE(m.test(receive));
                EXPECT_EQ(m.counts().pushed, 1u);
            }
            meet();
            ok_or_fail(m, m.wait(send));
            meet();
            if (j.rank() == 1) {
                EXPECT_EQ(std::count(data.begin(), data.end(), std::byte{0xee}), 1 << 20);
            }
        },
        options);
}

/// Both ends copy pieces: those that the sender has begun are written before the receive is gone.
TEST(MessengerWithdrawal, NothingIsWrittenIntoAReceiveThatIsGone) {
    if (ranks_are_processes()) GTEST_SKIP() << "ranks as threads only";
    for (const path wish : {path::streamed, path::direct}) {
        job_options options;
        options.path = wish;
        run_threads(
            2,
            [](const job& j) {
                messenger m(j);
                constexpr std::size_t n = 4 << 20;
                bytes data(n, &j.memory());
                for (int round = 0; round < 100; ++round) {
                    if (j.rank() == 0) {
                        ok_or_fail(m, m.send(data, 1, 5));
                    } else {
                        std::optional<message_request> receive(std::in_place);
                        m.irecv(*receive, data, 0, 5);
                        while (!receive->done() && m.counts().arrived == static_cast<std::uint64_t>(round))
                            (void)m.test(*receive);
                        for (int i = 0; i < round % 10; ++i) (void)m.test(*receive);
                        receive.reset();
                        std::fill(data.begin(), data.end(), std::byte{0xee});
                    }
                    j.barrier(); // the send has ended
                    if (j.rank() == 1) {
                        ASSERT_EQ(std::count(data.begin(), data.end(), std::byte{0xee}),
                                  static_cast<std::ptrdiff_t>(n));
                    }
                }
                expect_one_more(m, &j.memory());
            },
            options);
    }
}

/// A messenger that ends waits for a peer that is copying into one of its receives, and meanwhile takes what comes from
/// others. Each of them hears the farewell after that, because then it may use its memory for something else.
TEST(MessengerWithdrawal, FarewellsAreSaidWhenNothingMovesAnyMore) {
    if (ranks_are_processes()) GTEST_SKIP() << "ranks as threads only";
    enum : int { begun, pushing, copying, ending, waiting, looked, over };
    struct course {
        std::atomic<int> at{begun};
        void wait_for(int least) const {
            while (at < least) std::this_thread::yield();
        }
        static void step(void* object) { // of rank 0
            auto& self = *static_cast<course*>(object);
            if (int expected = ending; self.at.compare_exchange_strong(expected, waiting)) self.wait_for(looked);
        }
    } course;
    job_options options;
    options.path = path::streamed;
    run_threads(
        3,
        [&](const job& j) {
            channel_set work(j, std::span<const channel_request>(), {"work", ""});
            if (j.rank() == 0) work.work_in_every_wait(&course, course::step);
            auto m = std::make_unique<messenger>(j);
            bytes large(64 << 20, &j.memory());
            std::optional<message_request> request(std::in_place);
            if (j.rank() == 0) {
                m->irecv(*request, large, 2, 5);
                while (m->counts().pushed == 0) (void)m->test(*request);
                course.at = pushing;
                course.wait_for(copying);
                course.at = ending;
                m.reset();
                course.at = over;
            } else if (j.rank() == 1) {
                m->irecv(*request, {}, 0, 6);
                course.wait_for(waiting);
                if (course.at == waiting) {
                    EXPECT_EQ(m->wait_all_for({&*request, 1}, std::chrono::milliseconds(50)), status::timed_out);
                    course.at = looked;
                }
                course.wait_for(over);
                EXPECT_EQ(m->wait(*request), status::aborted);
            } else {
                m->isend(*request, large, 0, 5);
                course.wait_for(pushing);
                course.at = copying;
                while (!m->test(*request)) {
                }
            }
            request.reset();
            j.barrier();
        },
        options);
}

/// By then its buffer may hold anything.
TEST(MessengerBetweenRanks, ASendWhoseMessengerIsGoneIsNotReceivedAnyMore) {
    on_ranks({2}, [](const job& j) {
        for (auto* const where : {static_cast<std::pmr::memory_resource*>(&j.memory()), heap()})
            for (const bool kept : {false, true}) {
                std::optional<messenger> m(j);
                bytes data(1 << 20, where);
                message_request r;
                if (j.rank() == 0) {
                    fill(data, 0, 1);
                    m->isend(r, data, 1, 3);
                    m.reset();
                    EXPECT_TRUE(r.done());
                    fill(data, 0, 2);
                    j.barrier();
                } else {
                    message_info info;
                    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
                    while (kept && j.rank() == 1 && !m->probe(0, 3, info) && std::chrono::steady_clock::now() < end)
                        std::this_thread::yield(); // over a network it may never be announced
                    j.barrier();
                    if (j.rank() == 1) {
                        EXPECT_EQ(m->recv(data, 0, 3), status::aborted) << m->pending();
                    }
                }
                j.barrier();
            }
    });
}

/// As if it had been received: the receiver may well end its messenger before all pieces have come.
TEST(MessengerOverNetwork, ASendWhoseReceiveIsWithdrawnEndsWellAlsoWhenTheReceiverLeaves) {
    on_ranks({}, [](const job& j) {
        std::optional<messenger> m(std::in_place, j, messenger_options{.direct_bytes = std::size_t{1} << 30});
        bytes data(8 << 20);
        if (j.rank() == 0) {
            ok_or_fail(*m, m->send(data, 1, 5));
        } else if (j.rank() == 1) {
            {
                message_request r;
                m->irecv(r, data, 0, 5);
                while (m->counts().frame_pieces == 0) (void)m->test(r);
            }
            m.reset();
        }
        j.barrier();
    });
}

/// The words about it may be lost with the sender's messenger.
TEST(MessengerOfThree, AMessageWithdrawnByARankThatLeavesIsNotReceivedInPlaceOfAnothers) {
    on_ranks({3}, [](const job& j) {
        ASSERT_GE(j.ranks(), 3);
        idle_barrier meet(j);
        enum class course { met_late, called, invited };
        for (const course how : {course::met_late, course::called, course::invited}) {
            const bool has_met = how != course::met_late;
            messenger_options options;
            if (how == course::called) options.direct_bytes = std::size_t{1} << 30;
            std::optional<messenger> m(std::in_place, j, options);
            bytes data(300'000);
            message_request r;
            if (j.rank() == 0) {
                {
                    message_request withdrawn;
                    m->isend(withdrawn, data, 1, 5);
                    ok_or_fail(*m, m->send({}, 1, 4));
                    meet([&] { (void)m->test(withdrawn); }); // MPI may send it in a later call
                }
                meet();
                m.reset();
            } else if (j.rank() == 1) {
                if (has_met) m->irecv(r, data, any_source, 5);
                ok_or_fail(*m, m->recv({}, 0, 4));
                meet();
                // A message that is being written is withdrawn once it has been; MPI moves it in both ranks' calls.
                if (how == course::invited)
                    meet([&] { (void)m->test(r); });
                else
                    meet();
                meet();
                if (!has_met) m->irecv(r, data, any_source, 5);
                ok_or_fail(*m, m->wait(r));
                const bool was_in_time = has_met && r.info().source == 0; // received before it was withdrawn
                EXPECT_EQ(r.info().source, was_in_time ? 0 : 2);
                EXPECT_EQ(r.info().bytes, was_in_time ? data.size() : 8);
                if (was_in_time) ok_or_fail(*m, m->recv(data, 2, 5));
            } else {
                meet();
                meet();
            }
            if (j.rank() != 1) meet();
            if (j.rank() == 2) ok_or_fail(*m, m->send(std::span(data).first(8), 1, 5));
            j.barrier();
        }
    });
}

/// With these options both ends copy every message; one that doesn't fit is copied by neither.
TEST(MessengerWithdrawal, AMessageThatIsTooLongIsNotWrittenByItsSenderEither) {
    if (ranks_are_processes()) GTEST_SKIP() << "ranks as threads only";
    for (int round = 0; round < 300; ++round) { // many, because the sender must look at the right moment to fail
        run_threads(2, [&](const job& j) {
            messenger m(j, {.synergistic_bytes = 0});
            bytes data(200'000, &j.memory());
            std::fill(data.begin(), data.end(), j.rank() == 0 ? std::byte{0xee} : std::byte{});
            if (j.rank() == 0) {
                ok_or_fail(m, m.send(data, 1, 5));
            } else {
                EXPECT_EQ(m.recv(std::span(data).first(64), 0, 5), status::wrong_data);
            }
            j.barrier();
            if (j.rank() == 1) {
                ASSERT_EQ(std::count(data.begin(), data.end(), std::byte{}), 200'000) << round;
            }
        });
        if (HasFailure()) return;
    }
}

} // namespace
