// SPDX-License-Identifier: Apache-2.0
// Matched messages that bypass their sender's cache, on their way to the receiver's buffer or into a copy. Ranks only as
// threads: they share memory, and their jobs ask for it.
#include "messenger_bodies.hpp"

#include <halocline/comm/costs.hpp>
#include <halocline_test/idle_barrier.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>

namespace {

using namespace halocline_test::messages;
using halocline_test::idle_barrier;

TEST(MessengerPush, LargePayloadIsPushedWhereTheJobStreams) {
    job_options options;
    for (const path wish : {path::streamed, path::direct}) {
        options.path = wish;
        run_threads(
            3,
            [](const job& j) {
                messenger m(j);
                std::uint64_t number = 0;
                for (const std::size_t n : {1024, 32767, 32768, 32769, 65537, 262144, (1 << 20) + 1})
                    for (int way = 0; way < ways; ++way) expect_round_the_ring(m, n, way, ++number);
                j.barrier();
            },
            options);
        run_threads(
            2,
            [&](const job& j) {
                messenger m(j, {.streamed_bytes = 1});
                bytes out(32 * 1024, &j.memory()), in(32 * 1024, &j.memory());
                message_request send;
                m.isend(send, out, 1 - j.rank(), 0);
                ok_or_fail(m, m.recv(in, 1 - j.rank(), 0));
                ok_or_fail(m, m.wait(send));

                EXPECT_EQ(m.counts().pushed, wish == path::streamed ? 1u : 0u);
            },
            options);
    }
}

/// Streaming 32 KiB is slightly worse than not streaming; or, if `far`, much better.
costs made_up(bool far) {
    return {.flag_seconds = 20e-9,
            .message_seconds = 10e-9,
            .copy_seconds_per_byte = 1e-9,
            .run_seconds = 1e-9,
            .cached = {20e-9, far ? 80e-9 : 8e-9},
            .streamed = {300e-9, 8e-9},
            .take_seconds = far ? 1.0 : 1e-12, // so that whatever lines cost here, the machine is found to have changed
            .keep_seconds = 1e-13};
}

/// Through its cache, wherever the cores are; but one that both ends can copy is shared if nothing comes back.
TEST(MessengerPush, SendersCopyWhereMovesSkipWaits) {
    for (const bool far : {false, true})
        run_threads(2, [&](const job& j) {
            costs c = made_up(far);
            c.moves_skip_waits = true;
            c.take_seconds = 0; // so that the watch never changes
            assume_costs(j, c);
            messenger m(j, {.synergistic_bytes = 100'000});
            EXPECT_NE(m.describe().find("; messages from 32768 bytes on are moved by their senders"), std::string::npos)
                << m.describe();
            std::uint64_t pushed = 0, number = 0;
            for (const std::size_t n : {32 * 1024, 32 * 1024 - 1, 99'999, 100'000}) {
                bytes out(n, &j.memory()), in(n, &j.memory());
                fill(out, j.rank(), ++number);
                message_request last, send; // the last one is received last: until then this rank sends something, too
                m.isend(last, out, 1 - j.rank(), 1);
                m.isend(send, out, 1 - j.rank(), 0);
                ok_or_fail(m, m.recv(in, 1 - j.rank(), 0));
                pushed += n >= 32 * 1024;
                EXPECT_EQ(m.counts().pushed, pushed) << n;
                EXPECT_EQ(wrong(in, 1 - j.rank(), number), 0u);
                ok_or_fail(m, m.wait(send));
                j.barrier();
                ok_or_fail(m, m.recv(in, 1 - j.rank(), 1));
                ok_or_fail(m, m.wait(last));
                pushed = m.counts().pushed;
                j.barrier();
            }
            bytes data(100'000, &j.memory());
            if (j.rank() == 0) {
                ok_or_fail(m, m.send(data, 1, 0));
            } else {
                ok_or_fail(m, m.recv(data, 0, 0));
                EXPECT_EQ(m.counts().pushed, pushed + (far ? 1 : 0));
            }
            j.barrier();
        });
}

/// The receiver has asked for it, and the sender has not begun. Its receive gets the next message, also if that comes
/// together with the notice and a younger receive is posted.
TEST(MessengerPush, AMessageWithdrawnBeforeItIsPushedLeavesItsReceiveInItsPlace) {
    job_options options;
    options.path = path::streamed;
    for (const bool together : {false, true})
        run_threads(
            2,
            [together](const job& j) {
                idle_barrier meet(j);
                messenger m(j);
                bytes data(100'000, &j.memory());
                if (j.rank() == 0) {
                    {
                        message_request send;
                        m.isend(send, data, 1, 5);
                        meet();
                        meet();
                    }
                    std::ranges::fill(data, std::byte{7}); // the program's again
                    if (!together) meet();
                    ok_or_fail(m, m.send(std::span(data).first(8), 1, 5));
                    if (together) meet();
                } else {
                    meet();
                    std::array<message_request, 2> receives;
                    for (message_request& r : receives) m.irecv(r, data, 0, 5);
                    EXPECT_FALSE(m.test(receives[0]));
                    EXPECT_EQ(m.counts().pushed, 1u);
                    meet();
                    meet();
                    EXPECT_EQ(m.wait_all_for(std::span(receives).first(1), std::chrono::seconds(1)), status::ok);
                    EXPECT_EQ(receives[0].info().bytes, 8u);
                    EXPECT_FALSE(receives[1].done());
                }
                j.barrier();
            },
            options);
}

TEST(MessengerPush, FollowsTheMachine) {
    constexpr std::uint64_t messages = 12, looks = 4; // at the fourth
    for (const bool far : {false, true}) {
        run_threads(2, [&](const job& j) {
            assume_costs(j, made_up(far));
            messenger m(j);
            bytes data(32 * 1024, &j.memory());
            EXPECT_EQ(m.describe().find("past the sender's cache: messages from") != std::string::npos, far)
                << m.describe();
            for (std::uint64_t k = 1; k <= messages; ++k) {
                if (j.rank() == 0) {
                    fill(data, 0, k);
                    ok_or_fail(m, m.send(data, 1, 0));
                    continue;
                }
                ok_or_fail(m, m.recv(data, 0, 0));
                EXPECT_EQ(m.counts().pushed, far ? std::min(k, looks - 1) : k - std::min(k, looks - 1));
                EXPECT_EQ(wrong(data, 0, k), 0u);
            }
            j.barrier();
        });
    }
}

/// Sends and receives a message of these bytes both ways, number `k`, in turn.
void there_and_back(messenger& m, std::span<std::byte> data, int rank, std::uint64_t k) {
    for (const int sender : {0, 1}) {
        if (rank == sender) {
            fill(data, sender, k);
            ok_or_fail(m, m.send(data, 1 - sender, 0));
        } else {
            ok_or_fail(m, m.recv(data, sender, 0));
            EXPECT_EQ(wrong(data, sender, k), 0u) << k;
        }
    }
}

/// Also where no stream of messages goes one way: then a few sends are copied to find out.
TEST(MessengerPush, CopiesFollowTheMachineToo) {
    constexpr std::uint64_t first = 1, looks = 4; // a place tells nothing before the receiver has read it
    for (const bool far : {false, true})
        for (const std::size_t n : {1025, 2048, 4095, 4096, 16384, 16385, 32767, 32768})
            run_threads(2, [&](const job& j) {
                assume_costs(j, made_up(far));
                messenger m(j);
                EXPECT_EQ(m.describe().find("past the sender's cache: copies from") != std::string::npos, far);
                bytes data(n, &j.memory());
                for (std::uint64_t k = 1; k <= first + looks - 1; ++k) there_and_back(m, data, j.rank(), k);
                const bool copied = n >= 4096 && n < 32768;
                EXPECT_EQ(m.counts().copied, copied ? first + looks - 1 : 0);
                EXPECT_EQ(m.counts().copied_past, copied && far ? first + looks - 1 : 0);

                for (std::uint64_t k = 1; k <= looks; ++k) there_and_back(m, data, j.rank(), k);
                const std::uint64_t more = m.counts().copied - (copied ? first + looks - 1 : 0);
                if (copied && far) { // at least the last of the first looks; more on a slow machine
                    EXPECT_TRUE(more >= 1 && more <= looks) << more;
                } else {
                    EXPECT_EQ(more, copied ? looks : 0);
                }
                EXPECT_EQ(m.counts().copied_past, copied ? (far ? first + looks - 1 : looks) : 0) << n;
                j.barrier();
            });
}

/// Where moves skip waits, answered messages are copied first while cores are far apart, all that there is a place for
/// but those of 2 to 8 KiB, and never past the cache.
TEST(MessengerPush, MovedCopiesFollowTheDistance) {
    constexpr std::uint64_t first = 1, looks = 4;
    for (const bool far : {false, true})
        for (const std::size_t n : {1024, 1025, 2048, 2049, 8191, 8192, 16384, 16385, 32767, 32768})
            run_threads(2, [&](const job& j) {
                costs c = made_up(far);
                c.moves_skip_waits = true;
                c.pulled_line_seconds = c.cached.line_seconds;
                assume_costs(j, c);
                messenger m(j);
                EXPECT_NE(m.describe().find("; copied first up to 32767 bytes when a line takes more than"),
                          std::string::npos)
                    << m.describe();
                bytes data(n, &j.memory());
                const bool copied = (n > 1024 && n <= 2048) || (n >= 8192 && n < 32768);
                for (std::uint64_t k = 1; k <= first + looks - 1; ++k) there_and_back(m, data, j.rank(), k);
                EXPECT_EQ(m.counts().copied, copied ? first + looks - 1 : 0) << n;

                // After the last look each machine turns out to be the other: the copies begin, or end.
                for (std::uint64_t k = 1; k <= 3; ++k) there_and_back(m, data, j.rank(), k);
                const std::uint64_t more = m.counts().copied - (copied ? first + looks - 1 : 0);
                if (copied && far) // the last of the first looks; more on a slow machine
                    EXPECT_TRUE(more >= 1 && more <= 3) << more;
                else
                    EXPECT_EQ(more, copied ? 3u : 0u) << n;
                EXPECT_EQ(m.counts().copied_past, 0u);
                j.barrier();
            });
}

TEST(MessengerPush, AMachineThatIsAsItWasChangesNothing) {
    run_threads(2, [](const job& j) {
        costs c = made_up(false);
        c.take_seconds = 1.0;
        assume_costs(j, c);
        messenger m(j);
        bytes data(32 * 1024, &j.memory());
        for (int k = 0; k < 12; ++k) ok_or_fail(m, j.rank() == 0 ? m.send(data, 1, 0) : m.recv(data, 0, 0));

        EXPECT_EQ(m.counts().pushed, 0u);
        EXPECT_NE(m.describe().find("bytes on are streamed when a line takes more than 2"), std::string::npos)
            << m.describe();
        j.barrier();
    });
}

TEST(MessengerPush, LargeMessagesBothWaysArePushed) {
    run_threads(2, [](const job& j) {
        constexpr std::uint64_t rounds = 100;
        messenger m(j, {.streamed_bytes = 100'000});
        const int peer = 1 - j.rank();
        bytes out(1'000'003, &j.memory()), in(1'000'003, &j.memory());
        for (std::uint64_t round = 0; round < rounds; ++round) {
            fill(std::span(out).first(100), j.rank(), round);
            fill(std::span(out).last(100), j.rank(), round);
            message_request send, receive;
            m.isend(send, out, peer, 0);
            m.irecv(receive, in, peer, 0);
            ok_or_fail(m, m.wait(receive));
            ok_or_fail(m, m.wait(send));
            ASSERT_EQ(wrong(std::span(in).first(100), peer, round) + wrong(std::span(in).last(100), peer, round), 0u);
        }
        // A rank whose send has ended is no longer one of two exchanging ranks; that never happens to both.
        const std::uint64_t here = m.counts().pushed;
        std::uint64_t there = 0;
        ok_or_fail(m, m.send(std::as_bytes(std::span(&here, 1)), peer, 0));
        ok_or_fail(m, m.recv(std::as_writable_bytes(std::span(&there, 1)), peer, 0));
        EXPECT_GE(here + there, rounds);
        j.barrier();
    });
}

} // namespace
