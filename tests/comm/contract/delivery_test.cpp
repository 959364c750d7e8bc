// SPDX-License-Identifier: Apache-2.0
// What is sent arrives: every size, every epoch, in order, whichever rank is late.
#include "contender.hpp"
#include "bodies.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

using namespace halocline_test;

void nap() { std::this_thread::sleep_for(std::chrono::microseconds(300)); }

TEST(Contract, TheTransportIsTheOneAskedFor) {
    on_every_rank([](const job& j) {
        for (const rank_info& m : j.members())
            EXPECT_EQ(m.transport, m.rank == j.rank() ? "self" : under_test().transport);
        channel_set set(j, ring(j, 64), {"ring", ""});
        const auto counts = set.counts(0);
        ASSERT_EQ(counts.size(), 1u) << "one lane";
        EXPECT_EQ(counts[0].transport, j.ranks() == 1 ? "self" : under_test().transport);
        set.for_each([]<class C>(const C& c) {
            if constexpr (std::is_same_v<C, mpi_channel>) {
                EXPECT_STREQ(c.path_taken(), under_test().mpi == mpi_mode::one_sided ? "one-sided" : "packed");
            }
        });
    });
}

TEST(Contract, EveryByteOfEverySizeArrives) {
    on_every_rank([](const job& j) {
        for (const std::size_t bytes : {0, 1, 16, 17, 63, 64, 65, 511, 512, 513, 8191, 8192, 8193, 65'536, 1 << 20}) {
            expect_ring_delivers(j, bytes, steps(bytes > 100'000 ? 20 : 100, j));
        }
    });
}

TEST(Contract, ManyStepsArriveInOrder) {
    on_every_rank([](const job& j) { expect_ring_delivers(j, 200, steps(100'000, j)); });
}

TEST(Contract, ALateSenderChangesNothing) {
    on_every_rank([](const job& j) {
        const int late = j.ranks() / 2;
        const auto dawdle = [&](std::uint64_t k) {
            if (j.rank() == late && k % 16 == 0) nap();
        };
        expect_ring_delivers(j, 4096, steps(300, j), dawdle, [](std::uint64_t) {});
    });
}

TEST(Contract, ALateReceiverChangesNothing) {
    on_every_rank([](const job& j) {
        const int late = j.ranks() / 2;
        const auto dawdle = [&](std::uint64_t k) {
            if (j.rank() == late && k % 16 == 0) nap();
        };
        for (const std::size_t bytes : {8, 100'000}) { // eager and rendezvous, if there is a difference
            expect_ring_delivers(
                j, bytes, steps(200, j), [](std::uint64_t) {}, dawdle);
        }
    });
}

TEST(Contract, EachDirectionHasItsOwnSize) {
    on_every_rank([](const job& j) {
        constexpr std::size_t up = 1000, down = 0;
        auto requests = ring(j, up);
        requests[0].receive_bytes = requests[1].send_bytes = down;
        const tape t(up);
        channel_set set(j, requests, {"one way", ""});
        for (std::uint64_t k = 1; k <= 50; ++k) {
            fill_and_send(set, t, j.rank(), k);
            wait_for(j, set, k);
            EXPECT_EQ(wrong_messages(set, t, k), 0);
        }
        const auto counts = set.counts(50);
        ASSERT_EQ(counts.size(), 1u);
        EXPECT_EQ(counts[0].messages, 100u);
        EXPECT_EQ(counts[0].bytes, 50 * up);
    });
}

TEST(Contract, ManyEndsBetweenTwoRanksAreNotMixedUp) {
    on_every_rank([](const job& j) {
        const int next = (j.rank() + 1) % j.ranks(), before = (j.rank() + j.ranks() - 1) % j.ranks();
        std::vector<channel_request> requests;
        for (std::uint32_t n = 0; n < 8; ++n) {
            requests.push_back({next, 2 * n + 1, 2 * n, 32 + n, 32 + n, "high"});
            requests.insert(requests.begin(), {before, 2 * n, 2 * n + 1, 32 + n, 32 + n, "low"}); // in another order
        }
        const tape t(64);
        channel_set set(j, requests, {"many", ""});
        for (std::uint64_t k = 1; k <= 50; ++k) {
            fill_and_send(set, t, j.rank(), k);
            wait_for(j, set, k);
            EXPECT_EQ(wrong_messages(set, t, k), 0);
        }
    });
}

TEST(Contract, SeveralSetsMayBeInFlight) {
    on_every_rank([](const job& j) {
        const tape t(3000);
        channel_set a(j, ring(j, 3000), {"a", ""}), b(j, ring(j, 40), {"b", ""});
        for (std::uint64_t k = 1; k <= 50; ++k) {
            fill_and_send(a, t, j.rank(), k);
            fill_and_send(b, t, j.rank(), k);
            wait_for(j, k % 2 ? a : b, k);
            wait_for(j, k % 2 ? b : a, k);
            EXPECT_EQ(wrong_messages(a, t, k) + wrong_messages(b, t, k), 0);
        }
    });
}

/// By then nobody reads the sent message any more, even if it was a long one.
TEST(Contract, TheNextMessageMayBeWrittenAsSoonAsThePeersIsHere) {
    on_every_rank([](const job& j) {
        for (const std::size_t bytes : {3000, 1'500'000}) {
            const tape t(bytes);
            channel_set set(j, ring(j, bytes), {"ring", ""});
            std::uint64_t wrong = 0;
            for (std::uint64_t k = 1, n = steps(40, j); k <= n; ++k) {
                fill_and_send(set, t, j.rank(), k);
                wait_for(j, set, k);
                set.for_each([&](auto& c) { std::memset(c.target(k + 1), 0x5a, bytes); });
                wrong += static_cast<std::uint64_t>(wrong_messages(set, t, k));
            }
            EXPECT_EQ(wrong, 0u) << "rank " << j.rank() << ", " << bytes << " bytes";
        }
    });
}

/// The two slots: a peer may be one epoch ahead, and what is being read stays unchanged until this rank continues.
TEST(Contract, APeerOneEpochAheadOverwritesNothing) {
    on_every_rank([](const job& j) {
        const tape t(5000);
        channel_set set(j, ring(j, 5000), {"ring", ""});
        int wrong = 0;
        for (std::uint64_t k = 1; k <= 40; ++k) {
            fill_and_send(set, t, j.rank(), k);
            wait_for(j, set, k);
            if (k % static_cast<std::uint64_t>(j.ranks()) == static_cast<std::uint64_t>(j.rank())) {
                const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(5);
                while (std::chrono::steady_clock::now() < until) { // the peers run ahead as far as they can
                    set.for_each([&](auto& c) { (void)c.arrived(k + 1); });
                    wrong += wrong_messages(set, t, k);
                }
            }
            wrong += wrong_messages(set, t, k);
        }
        EXPECT_EQ(wrong, 0);
    });
}

TEST(Contract, ACommandOfTheShellInMidExchangeIsHarmless) {
    on_every_rank([](const job& j) {
        const tape t(10'000);
        channel_set set(j, ring(j, 10'000), {"ring", ""});
        for (std::uint64_t k = 1; k <= 12; ++k) {
            fill_and_send(set, t, j.rank(), k);
            if (k % static_cast<std::uint64_t>(j.ranks()) == static_cast<std::uint64_t>(j.rank())) {
                EXPECT_EQ(std::system("true"), 0);
            }
            wait_for(j, set, k);
            EXPECT_EQ(wrong_messages(set, t, k), 0) << k;
        }
    });
}

TEST(Contract, TestSaysWhenWaitWouldReturn) {
    on_every_rank([](const job& j) {
        channel_set set(j, ring(j, 64), {"ring", ""});
        EXPECT_FALSE(set.test(1)) << "nothing was sent";
        j.barrier();
        set.for_each([](auto& c) { c.send(1, ticks()); });
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        while (!set.test(1) && std::chrono::steady_clock::now() < end) std::this_thread::yield();
        EXPECT_TRUE(set.test(1));
        EXPECT_EQ(set.wait(1), status::ok);
        j.barrier();
        EXPECT_FALSE(set.test(2));
        j.barrier(); // before anybody's farewell
    });
}

TEST(Contract, HeadersSayWhenTheSenderStartedAndWhatItSent) {
    on_every_rank([](const job& j) {
        channel_set set(j, ring(j, 64), {"ring", ""});
        for (std::uint64_t k = 1; k <= 5; ++k) {
            set.for_each([&](auto& c) { c.send(k, 1000 * k + static_cast<std::uint64_t>(j.rank()), 40 + j.rank()); });
            wait_for(j, set, k);
            set.for_each([&](auto& c) {
                const message_label& h = c.label(k);
                EXPECT_EQ(h.epoch.load(), k);
                EXPECT_EQ(h.bytes, 64u);
                EXPECT_EQ(h.start_stamp, 1000 * k + static_cast<std::uint64_t>(c.peer()));
                EXPECT_EQ(h.field_index, 40u + static_cast<unsigned>(c.peer()));
            });
        }
    });
}

} // namespace
