// SPDX-License-Identifier: Apache-2.0
// Windows between ranks that are threads: what the thread sanitizer can judge, and what counts allocations.
#include "window_bodies.hpp"
#include "window_connection_bodies.hpp"

#include <halocline/comm/costs.hpp>
#include <halocline/comm/global_sum.hpp>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <initializer_list>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace halocline_test;

TEST(WindowThreads, StepsInOrder) {
    for (const int ranks : {1, 2, 3}) run_threads(ranks, [](const job& j) { expect_steps_in_order(j, 20); });
}

TEST(WindowThreads, OneWayStream) {
    run_threads(2, [](const job& j) { expect_one_way_stream(j, 500); });
}

TEST(WindowThreads, SmallOnesRunAhead) {
    for (const std::size_t count : {1, 6, 7, 32})
        run_threads(2, [&](const job& j) { expect_small_windows_run_ahead(j, count); });
}

TEST(WindowThreads, AWaitingReceiverCopiesPieces) {
    job_options options;
    options.path = path::direct; // streamed messages are left to the sender
    const auto body = [](const job& j) { expect_a_waiting_receiver_copies_pieces(j, true); };
    run_threads(2, body, options);
}

TEST(WindowThreads, AnyOrderOfConnections) {
    for (const int ranks : {1, 3, 5}) run_threads(ranks, expect_any_order_of_connections);
}

TEST(WindowThreads, ConnectionsOfAPairKeepTheirOrder) {
    for (const int ranks : {1, 2}) run_threads(ranks, expect_connections_of_a_pair_keep_their_order);
}

TEST(WindowThreads, PostedMessagesMoveInAnyWait) {
    run_threads(2, [](const job& j) { expect_posted_messages_move_in_any_wait(j); });
}

/// What a rank has posted leaves although it never waits in a call of halocline.
TEST(WindowThreads, PostedMessagesMoveWhenAskedTo) {
    std::atomic<bool> here{false};
    run_threads(2, [&](const job& j) {
        connection c(j, 1 - j.rank());
        words values(4000, j.rank() == 0 ? 7 : 0, &j.memory());
        if (j.rank() == 0) {
            send_window<std::uint64_t> w(c, values);
            c.connect();
            ASSERT_EQ(w.init(), status::ok);
            ASSERT_EQ(w.post(), status::ok);
            j.barrier(); // only now the receiver's array is free
            while (!here) j.progress();
            EXPECT_EQ(w.wait(), status::ok);
        } else {
            recv_window<std::uint64_t> w(c, values);
            c.connect();
            j.barrier();
            EXPECT_EQ(w.init(), status::ok);
            EXPECT_EQ(w.post(), status::ok);
            EXPECT_EQ(w.wait(), status::ok);
            EXPECT_EQ(values, words(4000, 7));
            here = true;
        }
        j.barrier();
    });
}

/// Outside post() and wait() a wait() would not wait either: it is refused.
TEST(WindowThreads, ATestSaysWhetherAWaitWouldReturnAtOnce) {
    run_threads(1, [](const job& j) {
        for (const int step_of : {0, 1, 2}) { // not connected, connected, begun
            connection c(j, 0);
            const words out(10, 7);
            words in(10);
            send_window<std::uint64_t> send(c, out);
            recv_window<std::uint64_t> receive(c, in);
            if (step_of > 0) c.connect();
            if (step_of > 1) {
                EXPECT_EQ(receive.init(), status::ok);
                EXPECT_EQ(send.init(), status::ok);
            }
            for (window* const w : std::initializer_list<window*>{&send, &receive}) {
                EXPECT_TRUE(w->test());
                EXPECT_EQ(w->state(), status::ok);
                EXPECT_EQ(w->wait(), status::misused);
                EXPECT_TRUE(w->test());
            }
        }
    });
}

/// One of them is noted, and the others are refused as well.
TEST(WindowThreads, MembersOfATeamMayBeRefusedAtTheSameTime) {
    run_threads(1, [](const job& j) {
        for (int round = 0; round < 20; ++round) {
            connection c(j, 0);
            buffered_send_window<char> w(c, 100);
            const buffered_recv_window<char> its_other_end(c, 100);
            c.connect();
            const std::vector<char> from(60);
            ASSERT_EQ(w.init(), status::ok);
            {
                std::vector<std::jthread> members;
                for (int t = 0; t < 4; ++t)
                    members.emplace_back([&, t] { w.insert(from, t % 2 == 0 ? 50 : 0, {t % 2 == 0 ? t : t + 4, 4}); });
            }
            EXPECT_EQ(w.post(), status::misused);
            const std::string text = w.pending();
            const auto says = [&](const char* what) { return text.find(what) != std::string::npos; };
            EXPECT_TRUE(says("insert() of elements that the window doesn't have") ||
                        says("it was called as member 5 of a team of 4") ||
                        says("it was called as member 7 of a team of 4"))
                << text;
        }
    });
}

/// One thread of a rank steps windows, another one waits in sums: it leaves the windows alone.
TEST(WindowThreads, WaitsOfAnotherThreadLeaveWindowsAlone) {
    run_threads(2, [](const job& j) {
        constexpr std::size_t count = 20'000;
        connection c(j, 1 - j.rank());
        words out(count, 0, &j.memory()), in(count, 0, &j.memory());
        send_window<std::uint64_t> send(c, out);
        recv_window<std::uint64_t> receive(c, in);
        c.connect();
        global_sum sum(j);
        std::jthread adds([&] {
            for (int k = 0; k < 20; ++k) {
                if (k % 2 == j.rank()) std::this_thread::sleep_for(std::chrono::milliseconds(10)); // the peer waits
                double one = 1;
                EXPECT_EQ(sum({&one, 1}), status::ok);
            }
        });
        for (std::uint64_t step = 1; step <= 100; ++step) {
            std::ranges::fill(out, step);
            EXPECT_EQ(receive.init(), status::ok);
            EXPECT_EQ(send.init(), status::ok);
            EXPECT_EQ(send.post(), status::ok);
            if (step % 10 == 0 && j.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
            EXPECT_EQ(receive.post(), status::ok);
            EXPECT_EQ(receive.wait(), status::ok);
            EXPECT_EQ(in, words(count, step));
            EXPECT_EQ(send.wait(), status::ok);
        }
        adds.join();
        j.barrier();
    });
}

/// One thread of a rank begins and posts, another one waits for the windows while the first waits in sums.
TEST(WindowThreads, AnotherThreadMayWaitForWhatOneHasPosted) {
    run_threads(2, [](const job& j) {
        constexpr std::size_t count = 20'000;
        constexpr std::uint64_t steps = 100;
        connection c(j, 1 - j.rank());
        words out(count, 0, &j.memory()), in(count, 0, &j.memory());
        send_window<std::uint64_t> send(c, out);
        recv_window<std::uint64_t> receive(c, in);
        c.connect();
        global_sum sum(j);
        std::barrier<> meet(2);
        std::jthread waits([&] {
            for (std::uint64_t step = 1; step <= steps; ++step) {
                meet.arrive_and_wait(); // posted
                EXPECT_EQ(receive.wait(), status::ok);
                EXPECT_EQ(send.wait(), status::ok);
                std::ranges::fill(out, 0); // nobody sends it any more
                meet.arrive_and_wait();
            }
        });
        for (std::uint64_t step = 1; step <= steps; ++step) {
            if (step % 4 == static_cast<std::uint64_t>(j.rank()))
                std::this_thread::sleep_for(std::chrono::microseconds(300));
            std::ranges::fill(out, step);
            EXPECT_EQ(receive.start(), status::ok);
            EXPECT_EQ(send.start(), status::ok);
            meet.arrive_and_wait();
            double one = 1;
            EXPECT_EQ(sum({&one, 1}), status::ok);
            meet.arrive_and_wait();
            j.barrier(); // neither rank sends any more
            EXPECT_EQ(in, words(count, step));
        }
    });
}

TEST(WindowThreads, LateWindowsAreWaitedFor) { run_threads(2, expect_late_windows_are_waited_for); }
TEST(WindowThreads, LateWindowsAreWaitedForInARow) { run_threads(4, expect_late_windows_are_waited_for_in_a_row); }
TEST(WindowThreads, CirclesAreRefused) {
    for (const int ranks : {2, 3, 4, 8}) run_threads(ranks, expect_circles_are_refused);
}
TEST(WindowThreads, UnlikeEndsAreRefused) { run_threads(2, expect_unlike_ends_are_refused); }

/// Neither knows that the other waits for a connection with other tags; each reports what it waits for.
TEST(WindowThreads, ADeadlineShowsTheTags) {
    job_options options;
    options.deadline = std::chrono::milliseconds(1500);
    const auto body = [](const job& j) {
        if (j.rank() == 1) { // which never connects
            EXPECT_THROW(j.barrier(), rank_failure);
            return;
        }
        connection c(j, 1, {"k", 3, 5});
        const std::vector<std::uint64_t> values(4);
        const send_window<std::uint64_t> w(c, values);
        std::string text;
        try {
            c.connect();
        } catch (const rank_failure& e) {
            text = e.what();
        }
        EXPECT_NE(text.find("the other end of send window 0 of connection 'k' of rank 0 with rank 1 (send tag 3, "
                            "receive tag 5)"),
                  std::string::npos)
            << text;
    };
    run_threads(2, body, options);
}

/// The place of the messages is the receiver's own buffer, and the receiver begins its own send first.
TEST(WindowThreads, BufferedSendsMayBeginBeforeTheirReceivers) {
    std::atomic<int> late = 0;
    const auto body = [&](const job& j) {
        constexpr std::size_t count = 1000;
        words in(count, 0, &j.memory());
        connection c(j, (j.rank() + 1) % j.ranks());
        buffered_send_window<std::uint64_t> to(c, count);
        recv_window<std::uint64_t> from(c, in);
        c.connect();
        const auto send = [&](std::uint64_t step, std::size_t n) {
            ASSERT_EQ(to.init(), status::ok);
            to.insert(words(count, step));
            if (j.ranks() == 1 && step <= 5) {
                EXPECT_EQ(reinterpret_cast<std::uintptr_t>(to.target().data()) % 128, 0u) << "as in a slot";
            }
            to.target()[n - 1] = step + 1;
            to.post(n);
        };
        const auto receive = [&](std::uint64_t step, std::size_t n) {
            ASSERT_EQ(from.wait(), status::ok);
            ASSERT_EQ(to.wait(), status::ok);
            ASSERT_EQ(from.count(), n);
            EXPECT_EQ(in[0], n == 1 ? step + 1 : step);
            EXPECT_EQ(in[n - 1], step + 1);
        };
        for (std::uint64_t step = 1; step <= 5; ++step) {
            send(step, count);
            from.start();
            receive(step, count);
        }
        const auto copied_so_far = [&to] { // without the path, which follows the machine
            const std::string text = to.describe();
            const std::size_t at = text.find(", copied there");
            return at == std::string::npos ? std::string() : text.substr(at);
        };
        const std::string so_far = copied_so_far();
        if (so_far.find("in which the receiver was late") != std::string::npos) ++late;
        for (std::uint64_t step = 6; step <= 10; ++step) { // the receiver in time
            from.start();
            j.barrier();
            send(step, step % 2 == 0 ? 1 : count);
            receive(step, step % 2 == 0 ? 1 : count);
        }
        EXPECT_EQ(copied_so_far(), so_far);
    };
    for (const int ranks : {1, 2}) {
        late = 0;
        run_threads(ranks, body);
        EXPECT_GT(late, 0) << ranks;
    }
}

TEST(WindowThreads, MisuseIsTold) { run_threads(1, expect_misuse_is_told); }
TEST(WindowThreads, WindowsOfNothingKeepTheirSteps) { run_threads(2, expect_windows_of_nothing_keep_their_steps); }
TEST(WindowThreads, MisuseOfOwnBuffersIsTold) { run_threads(1, expect_misuse_of_own_buffers_is_told); }

TEST(WindowThreads, FarewellEndsTheWait) {
    run_threads(2, [](const job& j) { expect_farewell_ends_the_wait(j); });
}

TEST(WindowThreads, AnEndThatNeverConnectsIsNoticed) {
    run_threads(2, [](const job& j) { expect_an_end_that_never_connects_is_noticed(j); });
}

TEST(WindowThreads, NoAllocationBetweenInitAndWait) {
    run_threads(1, [](const job& j) { expect_no_allocation(j); });
}

TEST(WindowThreads, MemoryComesBack) {
    run_threads(2, [](const job& j) {
        const auto once = [&] {
            auto links = ring_of_links(j, 4000, kind::elsewhere, kind::elsewhere);
            std::size_t wrong = 0;
            step_in_order(links, 1, wrong);
            j.barrier();
        };
        once();
        j.barrier();
        const std::size_t before = j.memory().used();
        for (int i = 0; i < 20; ++i) once();
        EXPECT_LE(j.memory().used(), before + 4 * 2 * 4000 * 8);
    });
}

/// Whichever end goes first: neither knows where the other one waits for a farewell.
TEST(WindowThreads, MemoryOfWindowsThatNeverConnectComesBack) {
    run_threads(2, [](const job& j) {
        const std::size_t before = j.memory().used();
        for (const int first : {0, 1}) {
            for (const std::size_t size : {std::size_t{6}, std::size_t{50'000}}) {
                words values(size, 1, &j.memory());
                {
                    connection c(j, 1 - j.rank());
                    const send_window<std::uint64_t> out(c, values);
                    const recv_window<std::uint64_t> in(c, values);
                    if (j.rank() != first) j.barrier();
                }
                if (j.rank() == first) j.barrier();
            }
        }
        j.barrier(); // all letters have come
        connection own(j, j.rank());
        words none(1, 0, &j.memory());
        const send_window<std::uint64_t> looks_for_farewells(own, none);
        EXPECT_LE(j.memory().used(), before + 8192) << "of which the last window has some";
        j.barrier();
    });
}

TEST(WindowThreads, ABufferThatThePeerMayWriteIsNotGivenAway) {
    run_threads(2, [](const job& j) {
        constexpr std::size_t size = 50'000; // more than any hole that the start of the job may have left
        connection c(j, 1 - j.rank());
        if (j.rank() == 0) {
            auto buffer = std::make_unique<words>(size, 0, &j.memory());
            const std::uint64_t* place = buffer->data();
            {
                recv_window<std::uint64_t> w(c, *buffer);
                c.connect();
                ASSERT_EQ(w.init(), status::ok); // the peer may write from now on
            }
            buffer.reset();
            words other(size, 7, &j.memory());
            EXPECT_NE(other.data(), place);
            j.barrier();
            j.barrier(); // the message and the farewell have arrived
            EXPECT_EQ(other, words(size, 7));
            connection own(j, 0);
            const send_window<std::uint64_t> looks_for_farewells(own, other);
            const words again(size, 0, &j.memory());
            EXPECT_TRUE(again.data() < place + size && place < again.data() + size) << "now it is";
        } else {
            words out(size, 3);
            {
                send_window<std::uint64_t> w(c, out);
                c.connect();
                j.barrier();
                ASSERT_EQ(w.init(), status::ok);
                ASSERT_EQ(w.post(), status::ok);
            }
            j.barrier();
        }
    });
}

TEST(WindowThreads, TeamsOfEverySizeCopyEachByteOnce) {
    run_threads(1, [](const job& j) {
        for (const std::size_t count : {1, 63, 64, 65, 1000}) {
            for (const int size : {1, 2, 3, 7, 100}) {
                connection c(j, 0);
                buffered_send_window<char> out(c, count);
                buffered_recv_window<char> in(c, count);
                c.connect();
                std::vector<char> from(count), to(count);
                for (std::size_t i = 0; i < count; ++i) from[i] = static_cast<char>(i * 7 + 1);
                ASSERT_EQ(in.init(), status::ok);
                ASSERT_EQ(out.init(), status::ok);
                for (int t = size; t-- > 0;) out.insert(from, 0, {t, size});
                ASSERT_EQ(out.post(), status::ok);
                ASSERT_EQ(in.post(), status::ok);
                ASSERT_EQ(in.wait(), status::ok);
                for (int t = 0; t < size; ++t) in.extract(to, 0, {t, size});
                ASSERT_EQ(out.wait(), status::ok);
                EXPECT_EQ(from, to) << count << " by " << size;
            }
        }
    });
}

/// From a user's array and by insert(), into a user's array in the slab and into slots; whole, and a part.
void expect_payloads_arrive(const job& j, std::size_t count) {
    connection c(j, 1 - j.rank());
    std::vector<std::uint8_t> out(count + 1), in(count);
    std::pmr::vector<std::uint8_t> in_slab(count, &j.memory());
    send_window<std::uint8_t> direct_out(c, std::span(out).subspan(1)), out_to_slots(c, std::span(out).first(count));
    buffered_send_window<std::uint8_t> buffered(c, count);
    recv_window<std::uint8_t> direct_in(c, in_slab), in_from_slots(c, in);
    buffered_recv_window<std::uint8_t> in_buffer(c, count);
    c.connect();
    for (std::size_t step = 1; step <= 6; ++step) {
        const std::size_t part = count - (step % 3) * (count / 4);
        const auto value = [&](std::size_t i, int rank) {
            return static_cast<std::uint8_t>(i * 7 + i / 256 + step * 31 + static_cast<std::size_t>(rank) * 101);
        };
        for (std::size_t i = 0; i <= count; ++i) out[i] = value(i, j.rank());
        direct_in.start();
        in_from_slots.start();
        in_buffer.init();
        in_buffer.post();
        direct_out.init();
        direct_out.post(part);
        out_to_slots.init();
        out_to_slots.post(part);
        ASSERT_EQ(buffered.init(), status::ok);
        for (int t = 0; t < 3; ++t) buffered.insert(std::span(out).first(part), 0, {t, 3});
        buffered.post(part);
        ASSERT_EQ(direct_in.wait(), status::ok);
        ASSERT_EQ(in_from_slots.wait(), status::ok);
        ASSERT_EQ(in_buffer.wait(), status::ok);
        for (window* w : std::initializer_list<window*>{&direct_out, &out_to_slots, &buffered})
            ASSERT_EQ(w->wait(), status::ok);
        ASSERT_EQ(in_buffer.count(), part);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < part; ++i) {
            const std::uint8_t right = value(i, 1 - j.rank());
            wrong += in_slab[i] != value(i + 1, 1 - j.rank());
            wrong += in[i] != right;
            wrong += in_buffer.received()[i] != right;
        }
        ASSERT_EQ(wrong, 0u) << count << ", step " << step;
    }
}

TEST(WindowThreads, PayloadsThatAreStreamedArrive) {
    for (const path wish : {path::streamed, path::direct}) {
        job_options options;
        options.path = wish;
        run_threads(
            2,
            [](const job& j) {
                for (const std::size_t count : {1, 64, 1000, 1025, 8191, 65'537}) expect_payloads_arrive(j, count);
            },
            options);
    }
}

/// Streaming 32 KiB is slightly worse than not streaming; or, if `far`, much better. The first four looks find the
/// opposite.
TEST(WindowThreads, WindowsFollowTheMachine) {
    for (const bool far : {false, true}) {
        run_threads(2, [&](const job& j) {
            assume_costs(j, {.flag_seconds = 20e-9,
                             .message_seconds = 10e-9,
                             .copy_seconds_per_byte = 1e-9,
                             .run_seconds = 1e-9,
                             .cached = {20e-9, far ? 80e-9 : 8e-9},
                             .streamed = {300e-9, 8e-9},
                             .take_seconds = far ? 1.0 : 1e-12,
                             .keep_seconds = 1e-13});
            connection c(j, 1 - j.rank());
            std::vector<std::uint8_t> out(32 * 1024);
            std::pmr::vector<std::uint8_t> in(out.size(), &j.memory());
            send_window<std::uint8_t> to(c, out);
            recv_window<std::uint8_t> from(c, in);
            c.connect();
            const auto streamed = [&] { return to.describe().find("past the sender's cache") != std::string::npos; };
            for (int step = 1; step <= 12; ++step) {
                EXPECT_EQ(streamed(), (step <= 4) == far) << step << ": " << to.describe();
                std::fill(out.begin(), out.end(), static_cast<std::uint8_t>(step + j.rank()));
                from.start();
                to.start();
                ASSERT_EQ(from.wait(), status::ok);
                ASSERT_EQ(to.wait(), status::ok);
                EXPECT_EQ(std::count(in.begin(), in.end(), static_cast<std::uint8_t>(step + 1 - j.rank())),
                          static_cast<std::ptrdiff_t>(in.size()));
            }
        });
    }
}

} // namespace
