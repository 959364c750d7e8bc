// SPDX-License-Identifier: Apache-2.0
// Longer messages over networks: whole in a frame, or straight into the receiver's memory, never through frames, and
// never into memory that was given back. The argument names the transport (named_transport.hpp).
#include "messenger_bodies.hpp"
#include "named_transport.hpp"

#include <gtest/gtest.h>
#include <halocline_test/idle_barrier.hpp>
#include <halocline_test/run_tests.hpp>

#include <algorithm>
#include <chrono>
#include <memory_resource>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

namespace {

using namespace halocline_test;
using namespace halocline_test::messages;

std::string transport;

/// Root may lock memory beyond any limit: gives up that right before the device is opened, but sets no limit yet.
bool become_one_whose_limits_hold() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct own[2]{};
    const rlimit all{RLIM_INFINITY, RLIM_INFINITY};
    if (setrlimit(RLIMIT_MEMLOCK, &all) != 0 || syscall(SYS_capget, &header, own) != 0) return false;
    own[CAP_IPC_LOCK / 32].effective &= ~(1u << (CAP_IPC_LOCK % 32));
    return syscall(SYS_capset, &header, own) == 0;
}

const job& world() {
    static const job j = job::from_environment(options_over(transport));
    return j;
}

bytes written(std::size_t n, std::pmr::memory_resource* where, int sender, std::uint64_t message) {
    bytes b(n, where);
    fill(b, sender, message);
    return b;
}

bool writes_are_counted() { return transport != "mpi" && transport != "ofi-tagged"; }

constexpr std::size_t least = 32 * 1024;
const messenger_options in_frames_below_least{.frame_bytes = 16 * 1024 + 48, .direct_bytes = least};

/// Size of the largest message that goes at once, by default.
std::size_t most_at_once() {
    if (transport == "ofi-tcp" || transport == "ofi-tagged") return 64 * 1024;
    return transport == "mpi" ? 32 * 1024 : 16 * 1024;
}

TEST(MessengerDirect, LargeMessagesAreWrittenAndNeverCopiedInFrames) {
    const job& j = world();
    messenger m(j, in_frames_below_least);
    std::uint64_t large = 0, writes = 0;
    for (const std::size_t n : {least, least + 1, std::size_t{100'003}, std::size_t{1} << 20, std::size_t{5'000'001}})
        for (int way = 0; way < ways; ++way) {
            expect_round_the_ring(m, n, way, ++large);
            writes += writes_of(n, transport == "ofi-tcp");
        }
    EXPECT_EQ(m.counts().written, large);
    EXPECT_EQ(m.counts().called, large);
    EXPECT_EQ(m.counts().frame_pieces, 0u);
    EXPECT_EQ(m.counts().not_registered, 0u);
    EXPECT_EQ(m.counts().writes, writes_are_counted() ? writes : 0u);
    EXPECT_NE(m.describe().find("from 32768 bytes straight into the receiver's memory"), std::string::npos)
        << m.describe();
    j.barrier();
}

TEST(MessengerDirect, SmallerOnesGoInFrames) {
    const job& j = world();
    messenger m(j, in_frames_below_least);
    const int peer = j.rank() ^ 1;
    if (peer < j.ranks()) {
        const bytes out = written(least - 1, &j.memory(), j.rank(), 1);
        bytes in(least, &j.memory());
        message_request send;
        m.isend(send, out, peer, 1);
        ok_or_fail(m, m.recv(in, peer, 1));
        ok_or_fail(m, m.wait(send));
        EXPECT_EQ(wrong(std::span(in).first(least - 1), peer, 1), 0u);
        EXPECT_EQ(m.counts().written, 0u);
        EXPECT_GT(m.counts().frame_pieces, 0u);
    }
    j.barrier();
}

/// Before its receive is posted, or after: the send never waits for that.
TEST(MessengerDirect, WhatFitsIntoAFrameGoesAtOnce) {
    const job& j = world();
    messenger m(j);
    const int peer = j.rank() ^ 1;
    std::uint64_t number = 0;
    for (const std::size_t n : {std::size_t{1025}, std::size_t{8191}, std::size_t{16} * 1024, most_at_once()}) {
        for (const bool posted : {true, false}) {
            const message_counts before = m.counts();
            const bytes out = written(n, std::pmr::new_delete_resource(), j.rank(), ++number);
            bytes in(n + 3, std::pmr::new_delete_resource());
            message_request receive;
            if (peer < j.ranks() && posted) m.irecv(receive, in, peer, 5);
            j.barrier();
            if (peer >= j.ranks()) continue;
            ok_or_fail(m, m.send(out, peer, 5));
            message_info info;
            while (!posted && !m.probe(peer, 5, info)) {
            }
            if (!posted) m.irecv(receive, in, peer, 5);
            ok_or_fail(m, m.wait(receive));
            ASSERT_EQ(receive.info().bytes, n);
            ASSERT_EQ(wrong(std::span(in).first(n), peer, number), 0u) << n << " bytes, posted: " << posted;
            EXPECT_EQ(m.counts().whole - before.whole, 1u) << n;
            EXPECT_EQ(m.counts().called - before.called, 0u) << n;
        }
    }
    j.barrier();
}

/// As many as there are places for are stored at their receiver; the others are announced, and come when they are called
/// for.
TEST(MessengerDirect, WholeMessagesForWhichThereIsNoPlaceAreAnnounced) {
    const job& j = world();
    messenger m(j);
    const int peer = j.rank() ^ 1;
    constexpr std::size_t count = 100, places = 64, n = 5000;
    std::vector<bytes> out;
    std::vector<message_request> sends(count);
    bytes in(n, std::pmr::new_delete_resource());
    if (peer < j.ranks()) {
        for (std::size_t i = 0; i < count; ++i) {
            out.push_back(written(n, std::pmr::new_delete_resource(), j.rank(), i));
            m.isend(sends[i], out[i], peer, static_cast<int>(i));
        }
        while (m.counts().unexpected < count) (void)m.test(sends[count - 1]);
    }
    j.barrier();
    const message_counts before = m.counts();
    for (std::size_t tag = count; tag > 0 && peer < j.ranks(); --tag) { // the last first
        ok_or_fail(m, m.recv(in, peer, static_cast<int>(tag - 1)));
        ASSERT_EQ(wrong(in, peer, tag - 1), 0u) << "message " << tag - 1;
    }
    ok_or_fail(m, m.wait_all(sends));
    EXPECT_EQ(m.counts().whole - before.whole, peer < j.ranks() ? places : 0);
    EXPECT_EQ(m.counts().called - before.called, peer < j.ranks() ? count - places : 0);
    j.barrier();
}

TEST(MessengerDirect, AWholeMessageArrivesAlsoWhenItsSendersMessengerIsGone) {
    const job& j = world();
    std::optional<messenger> m(j);
    const int peer = j.rank() ^ 1;
    if (peer < j.ranks() && j.rank() % 2 == 0) {
        for (std::uint64_t i = 0; i < 3; ++i)
            ok_or_fail(*m, m->send(written(9000, std::pmr::new_delete_resource(), j.rank(), i), peer, 1));
        m.reset();
    }
    j.barrier();
    for (std::uint64_t i = 0; i < 3 && j.rank() % 2 == 1; ++i) {
        bytes in(9000, std::pmr::new_delete_resource());
        ok_or_fail(*m, m->recv(in, peer, 1));
        EXPECT_EQ(wrong(in, peer, i), 0u);
    }
    j.barrier();
}

TEST(MessengerDirect, MoreAtATimeThanThereAreRecordsOrRegistrations) {
    const job& j = world();
    messenger m(j, in_frames_below_least);
    const int next = next_rank(j), before = rank_before(j);
    constexpr std::size_t count = 200;
    std::vector<bytes> out, in;
    std::vector<message_request> sends(count), receives(count);
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937(5)); // the same everywhere
    for (std::size_t i = 0; i < count; ++i) {
        out.push_back(written(least + 7 * i, std::pmr::new_delete_resource(), j.rank(), i));
        in.emplace_back(least + 7 * i);
        m.isend(sends[i], out[i], next, static_cast<int>(i % 3));
    }
    for (int tag = 0; tag < 3; ++tag)
        for (std::size_t i = 0; i < count; ++i)
            if (static_cast<int>(i % 3) == tag) m.irecv(receives[i], in[i], before, tag);
    ok_or_fail(m, m.wait_all(receives));
    ok_or_fail(m, m.wait_all(sends));
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(wrong(in[i], before, i), 0u) << i;
    EXPECT_EQ(m.counts().written, count);
    j.barrier();
}

/// Messages of a rank that makes no calls hold as many registrations as are kept.
TEST(MessengerDirect, ASilentPeerDoesNotHoldUpTheMessagesOfAnother) {
    const job& j = world();
    if (j.ranks() < 3) GTEST_SKIP() << "needs three ranks";
    idle_barrier meet(j);
    messenger m(j, in_frames_below_least);
    constexpr std::size_t count = 64;
    const bytes out = written(least, std::pmr::new_delete_resource(), j.rank(), 1);
    std::vector<message_request> of_1(j.rank() < 2 ? count : 0);
    if (j.rank() == 1) {
        for (message_request& r : of_1) m.isend(r, out, 0, 5);
        ok_or_fail(m, m.send({}, 0, 4)); // after which all have been announced
    }
    if (j.rank() == 0) ok_or_fail(m, m.recv({}, 1, 4));
    const auto make_progress = [&] { // MPI may send in a later call what send() has returned from
        message_info info;
        (void)m.probe(rank_before(j), 9, info);
    };
    meet(make_progress);
    meet(); // from here on rank 1 is silent
    std::vector<bytes> in(count, bytes(least));
    if (j.rank() == 0) {
        for (std::size_t i = 0; i < count; ++i) m.irecv(of_1[i], in[i], 1, 5);
        while (m.counts().called < count) (void)m.test(of_1[0]);
        bytes of_2(least);
        ok_or_fail(m, m.recv(of_2, 2, 5));
        EXPECT_EQ(wrong(of_2, 2, 1), 0u);
    }
    if (j.rank() == 2) ok_or_fail(m, m.send(out, 0, 5));
    if (j.rank() == 2) meet(make_progress);
    if (j.rank() != 2) meet(); // until here
    ok_or_fail(m, m.wait_all(of_1));
    if (j.rank() == 0) {
        for (const bytes& b : in) EXPECT_EQ(wrong(b, 1, 1), 0u);
        EXPECT_EQ(m.counts().written, count + 1);
    }
    j.barrier();
}

/// Memory that is returned to the system and mapped anew at the same address, with other pages behind it: a cache of
/// registrations that does not notice this gets it wrong.
TEST(MessengerDirect, TheSameAddressMayBeOtherMemory) {
    const job& j = world();
    messenger m(j, in_frames_below_least);
    const int next = next_rank(j), before = rank_before(j);
    constexpr std::size_t n = 1 << 20;
    void* at = nullptr;
    const auto map = [](void* place, int how) {
        return mmap(place, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | how, -1, 0);
    };
    for (std::uint64_t round = 0; round < 6; ++round) {
        void* p = nullptr;
        if (at != nullptr && round % 2 == 1) {
            p = map(at, MAP_FIXED); // over what is there
        } else if (at != nullptr) {
            munmap(at, n);
            p = map(at, MAP_FIXED_NOREPLACE); // a thread of the network's library may have taken the place
        }
        if (p == nullptr || p == MAP_FAILED) p = map(nullptr, 0);
        ASSERT_NE(p, MAP_FAILED);
        at = p;
        const std::span in(static_cast<std::byte*>(p), n);
        const bytes out = written(n, &j.memory(), j.rank(), round);
        message_request send;
        m.isend(send, out, next, 1);
        ok_or_fail(m, m.recv(in, before, 1));
        ok_or_fail(m, m.wait(send));
        EXPECT_EQ(wrong(in, before, round), 0u) << round;
    }
    munmap(at, n);
    j.barrier();
}

/// A receive that is destroyed while its sender may be writing: nothing is written there afterwards.
TEST(MessengerDirect, NothingIsWrittenIntoAReceiveThatWasGivenUp) {
    const job& j = world();
    messenger m(j, in_frames_below_least);
    const int peer = j.rank() ^ 1;
    constexpr std::size_t n = 8 << 20;
    for (int round = 0; round < 10 && peer < j.ranks(); ++round) {
        if (j.rank() > peer) {
            const bytes out = written(n, &j.memory(), j.rank(), 3);
            message_request send;
            m.isend(send, out, peer, 1);
            for (int i = 0; i < round; ++i) (void)m.test(send);
            ok_or_fail(m, m.wait(send)); // its receiver releases it
        } else {
            bytes in(n, &j.memory());
            {
                message_request receive;
                m.irecv(receive, in, peer, 1);
                while (!receive.done() && m.counts().called <= static_cast<std::uint64_t>(round)) (void)m.test(receive);
            }
            std::fill(in.begin(), in.end(), std::byte{0xee});
            message_info info;
            const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
            for (int i = 0; i < 2000 && std::chrono::steady_clock::now() < end; ++i)
                (void)m.probe(peer, 8, info); // makes progress; on a loaded machine each call yields the core
            EXPECT_EQ(std::count(in.begin(), in.end(), std::byte{0xee}), static_cast<std::ptrdiff_t>(n));
        }
    }
    j.barrier();
}

/// While a messenger that ends waits for a message that it is sending, it gets the room that it lacked before to call
/// for another one. Nobody may write into that receive afterwards, and its request is done.
TEST(MessengerDirect, AMessengerThatEndsLeavesNoReceiveUnderWay) {
    const job& j = world();
    const int peer = j.rank() ^ 1;
    constexpr std::size_t n = 32 << 20, fillers = 400;
    messenger_options options = in_frames_below_least;
    options.unexpected = fillers + 2;
    for (int round = 0; round < 3; ++round) {
        const bytes out = written(n, std::pmr::new_delete_resource(), j.rank(), 1), small(512);
        bytes in(n, std::pmr::new_delete_resource());
        message_request sending, receiving;
        std::vector<message_request> more(fillers);
        std::optional<messenger> m(std::in_place, j, options);
        if (peer < j.ranks() && j.rank() < peer) {
            m->isend(sending, out, peer, 1);
            message_info info;
            ok_or_fail(*m, m->wait_probe(peer, 2, info));
            // The write begins; over most networks it does not end before the peer looks.
            (void)m->start_all(std::span(&sending, 1), std::chrono::milliseconds(100));
            for (message_request& r : more) m->isend(r, small, peer, 3); // more than there are frames
            m->irecv(receiving, in, peer, 2);
        } else if (peer < j.ranks()) {
            m->isend(sending, out, peer, 2);
            m->irecv(receiving, in, peer, 1);
            while (m->counts().called == 0) (void)m->test(receiving);
            std::this_thread::sleep_for(std::chrono::milliseconds(300));
            if (m->wait(receiving) == status::ok) { // otherwise its sender has left behind it
                EXPECT_EQ(wrong(in, peer, 1), 0u);
            }
        }
        m.reset();
        EXPECT_TRUE(sending.done());
        EXPECT_TRUE(receiving.done());
        j.barrier();
    }
}

/// Rank 0 may lock no more memory: devices refuse to register it, as sender and as receiver.
TEST(MessengerDirect, WhatCannotBeRegisteredComesInFrames) {
    if (transport != "verbs") GTEST_SKIP() << "only devices lock memory";
    const job& j = world();
    messenger m(j, in_frames_below_least);
    const int next = next_rank(j), before = rank_before(j);
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
    const rlimit none{0, limit.rlim_max};
    if (j.rank() == 0) {
        ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &none), 0);
    }
    for (std::uint64_t round = 0; round < 20; ++round) {
        const std::size_t n = least + 10'000 * round;
        const bytes out = written(n, std::pmr::new_delete_resource(), j.rank(), round);
        bytes in(n, std::pmr::new_delete_resource());
        message_request send;
        m.isend(send, out, next, 1);
        ok_or_fail(m, m.recv(in, before, 1));
        ok_or_fail(m, m.wait(send));
        EXPECT_EQ(wrong(in, before, round), 0u) << round;
    }
    if (j.rank() == 0) {
        EXPECT_EQ(m.counts().not_registered, 40u);
        EXPECT_EQ(m.counts().written, 0u);
        ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
    }
    j.barrier();
}

} // namespace

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    if (argc != 2) return 2;
    transport = argv[1];
    if (transport == "verbs" && !become_one_whose_limits_hold()) return 1;
    return halocline_test::run_tests(halocline_test::skips::of_some_runs);
}
