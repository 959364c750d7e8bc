// SPDX-License-Identifier: Apache-2.0
// Windows between ranks that are processes, over the transport that the argument names (named_transport.hpp).
#include "named_transport.hpp"
#include "window_bodies.hpp"
#include "window_connection_bodies.hpp"

#include <halocline_test/forbid_system_calls.hpp>
#include <halocline_test/run_tests.hpp>
#include <halocline_test/secret_memory.hpp>

#include <numeric>

namespace {

using namespace halocline_test;

std::string transport;

/// Nobody leaves while others still look at this rank.
class Window : public testing::Test {
  protected:
    ~Window() override { job_.barrier(); }
    job job_ = job::from_environment(options_over(transport));
    [[nodiscard]] std::uint64_t steps(std::uint64_t alone) const {
        const bool slow = job_.ranks() > 2 || transport == "verbs"; // verbs runs in an emulated machine
        return slow ? std::max<std::uint64_t>(5, alone / 10) : alone;
    }
};

TEST_F(Window, StepsInOrder) { expect_steps_in_order(job_, steps(100)); }
TEST_F(Window, OneWayStream) { expect_one_way_stream(job_, steps(1000)); }
TEST_F(Window, SmallOnesRunAhead) {
    if (job_.transport() != "shm" || job_.ranks() != 2) GTEST_SKIP() << "of two ranks that share memory";
    expect_small_windows_run_ahead(job_, 32);
}
TEST_F(Window, AnyOrderOfConnections) { expect_any_order_of_connections(job_); }
TEST_F(Window, TheFirstMessageWaitsForALateEnd) { expect_the_first_message_waits_for_a_late_end(job_); }
TEST_F(Window, ConnectionsOfAPairKeepTheirOrder) { expect_connections_of_a_pair_keep_their_order(job_); }
TEST_F(Window, PostedMessagesMoveInAnyWait) { expect_posted_messages_move_in_any_wait(job_); }
TEST_F(Window, LateWindowsAreWaitedFor) { expect_late_windows_are_waited_for(job_); }
TEST_F(Window, LateWindowsAreWaitedForInARow) { expect_late_windows_are_waited_for_in_a_row(job_); }
TEST_F(Window, CirclesAreRefused) { expect_circles_are_refused(job_); }
TEST_F(Window, UnlikeEndsAreRefused) { expect_unlike_ends_are_refused(job_); }
TEST_F(Window, OfNothingKeepsItsSteps) { expect_windows_of_nothing_keep_their_steps(job_); }
TEST_F(Window, MisuseIsTold) { expect_misuse_is_told(job_); }
TEST_F(Window, FarewellEndsTheWait) { expect_farewell_ends_the_wait(job_); }
TEST_F(Window, AnEndThatNeverConnectsIsNoticed) {
    expect_an_end_that_never_connects_is_noticed(job_);
    expect_an_end_that_never_connects_is_noticed(job_, 1);
    expect_an_end_that_never_connects_is_noticed(job_, 20'000);
}

TEST_F(Window, NoAllocationBetweenInitAndWait) {
    if (job_.transport() != "self" && job_.transport() != "shm") GTEST_SKIP() << "promised of shared memory";
    expect_no_allocation(job_);
}

/// Rank 0 sends from ordinary memory into rank 1's slab; streaming is off, because it is left to the sender.
class WindowFromOrdinaryMemory : public testing::Test {
  protected:
    WindowFromOrdinaryMemory() : job_(job::from_environment(without_streams())) {}
    ~WindowFromOrdinaryMemory() override { job_.barrier(); }
    void SetUp() override {
        if (transport != "shm" || job_.ranks() != 2) GTEST_SKIP() << "of two ranks that share memory";
    }
    static job_options without_streams() {
        job_options options = options_over(transport);
        options.path = path::direct;
        return options;
    }
    job job_;
};

TEST_F(WindowFromOrdinaryMemory, AWaitingReceiverCopiesPieces) {
    for (const bool from_slab : {true, false}) expect_a_waiting_receiver_copies_pieces(job_, from_slab);
}

/// Sizes around the smallest that is copied by both ends, and around the edges of pieces; from an odd address.
TEST_F(WindowFromOrdinaryMemory, EveryByteArrives) {
    for (const std::size_t n : {65'535, 65'536, 65'537, 131'071, 131'072, 131'073, 262'147, 524'289, 4'194'305}) {
        std::pmr::vector<std::uint8_t> data(n + 1, 0, home(job_, job_.rank() == 1));
        connection c(job_, 1 - job_.rank());
        std::vector<send_window<std::uint8_t>> to;
        std::vector<recv_window<std::uint8_t>> from;
        if (job_.rank() == 0)
            to.emplace_back(c, std::span<const std::uint8_t>(data).subspan(1));
        else
            from.emplace_back(c, std::span(data).subspan(1));
        c.connect();
        const auto value = [](std::size_t i, std::size_t step) {
            return static_cast<std::uint8_t>(i * 7 + i / 256 + step * 31);
        };
        for (std::size_t step = 1; step <= 40; ++step) {
            const std::size_t part = n - (step % 3 == 0 ? step : 0);
            if (job_.rank() == 0) {
                for (std::size_t i = 1; i <= n; ++i) data[i] = value(i, step);
                to[0].init();
                to[0].post(part);
                ASSERT_EQ(to[0].wait(), status::ok) << to[0].pending();
            } else {
                from[0].start();
                ASSERT_EQ(from[0].wait(), status::ok) << from[0].pending();
                ASSERT_EQ(from[0].count(), part);
                std::size_t wrong = 0;
                for (std::size_t i = 1; i <= part; ++i) wrong += data[i] != value(i, step);
                ASSERT_EQ(wrong, 0u) << n << ", step " << step;
            }
        }
    }
}

/// Its first piece can be read, later ones can't.
TEST_F(WindowFromOrdinaryMemory, WhatTheSystemDoesNotCopyIsLeftToTheSender) {
    constexpr std::size_t bytes = 1 << 20;
    const secret_memory secret(bytes, bytes / 2);
    for (const std::string& missing : job_.gather(secret.exists() ? "" : "missing"))
        if (!missing.empty()) GTEST_SKIP() << "no memfd_secret here";
    words in(bytes / sizeof(std::uint64_t), 0, home(job_, true));
    const std::span out(reinterpret_cast<std::uint64_t*>(secret.all().data()), in.size());
    expect_pieces_until("refused one", job_, job_.rank() == 0 ? out : std::span(in));
}

/// In separate threads, where rank 1 may no longer read rank 0's memory.
class WindowRefused : public WindowFromOrdinaryMemory {
  protected:
    template <class Body>
    void once_connected_refuse(connection& c, Body body) {
        c.connect();
        std::thread([&] {
            if (job_.rank() == 1) refuse_system_call(SYS_process_vm_readv);
            body();
        }).join();
    }
    connection connection_{job_, (job_.rank() + 1) % job_.ranks()};
    words large_ = words(100'000, 0, home(job_, job_.rank() == 1)), small_ = words(10, 0, &job_.memory());
};

/// The sender mends a message in any window's wait: here it first waits for the answer.
TEST_F(WindowRefused, MessagesArriveWhileTheirSenderWaitsForAnother) {
    std::vector<send_window<std::uint64_t>> to;
    std::vector<recv_window<std::uint64_t>> from;
    const bool asks = job_.rank() == 0;
    to.emplace_back(connection_, std::span<const std::uint64_t>(asks ? large_ : small_));
    from.emplace_back(connection_, std::span<std::uint64_t>(asks ? small_ : large_));
    once_connected_refuse(connection_, [&] {
        std::uint64_t k = 0;
        while (++k <= 20 || (small_[1] == 0 && k < 20'000)) { // until a message was mended, and a while longer
            if (asks) {
                std::iota(large_.begin(), large_.end(), k);
                from[0].start();
                to[0].start();
                ASSERT_EQ(from[0].wait(), status::ok) << from[0].pending();
                EXPECT_EQ(small_[0], k);
                ASSERT_EQ(to[0].wait(), status::ok) << to[0].pending();
            } else {
                from[0].start();
                ASSERT_EQ(from[0].wait(), status::ok) << from[0].pending();
                std::size_t wrong = 0;
                for (std::size_t i = 0; i < large_.size(); ++i) wrong += large_[i] != k + i;
                ASSERT_EQ(wrong, 0u) << "step " << k;
                small_[0] = k;
                small_[1] = from[0].describe().find("refused one") != std::string::npos;
                to[0].start();
                ASSERT_EQ(to[0].wait(), status::ok) << to[0].pending();
            }
        }
        EXPECT_EQ(small_[1], 1u);
    });
}

/// A message whose sender closes its window without a wait arrives completely, or its receiver learns that it didn't.
TEST_F(WindowRefused, AClosedWindowEndsTheWait) {
    if (job_.rank() == 0) {
        std::iota(large_.begin(), large_.end(), 1u);
        send_window<std::uint64_t> to(connection_, large_);
        once_connected_refuse(connection_, [&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(20)); // the receiver is waiting by then
            ASSERT_EQ(to.init(), status::ok);
            ASSERT_EQ(to.post(), status::ok);
        });
    } else {
        recv_window<std::uint64_t> from(connection_, large_);
        once_connected_refuse(connection_, [&] {
            from.start();
            const status s = from.wait();
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < large_.size(); ++i) wrong += large_[i] != i + 1;
            EXPECT_TRUE(s == status::ok ? wrong == 0 : s == status::aborted) << from.describe();
        });
    }
}

TEST_F(Window, DescribesHowTheBytesGo) {
    words buffer(100, 0, &job_.memory());
    connection c(job_, (job_.rank() + 1) % job_.ranks(), {"named"});
    recv_window<std::uint64_t> w(c, buffer);
    EXPECT_NE(w.describe().find("100 of uint64"), std::string::npos) << w.describe();
    EXPECT_NE(w.describe().find("'named'"), std::string::npos) << w.describe();
}

} // namespace

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    transport = argc > 1 ? argv[1] : "shm";
    return halocline_test::run_tests(halocline_test::skips::of_some_runs);
}
