// SPDX-License-Identifier: Apache-2.0
// Test bodies for the steps of windows, which run with ranks as threads and as processes, over every transport.
#pragma once

#include "window_links.hpp"

#include <halocline_test/allocation_counter.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

namespace halocline_test {

/// Every message of every step is what its sender posted in that step, whole or in part.
inline void expect_steps_in_order(const job& j, std::uint64_t steps) {
    constexpr std::array kinds{kind::in_slab, kind::elsewhere, kind::buffered};
    for (const std::size_t count : {1, 2, 3, 6, 7, 8, 32, 33, 128, 129, 1023, 50'000}) {
        for (const kind s : kinds) {
            for (const kind r : kinds) {
                auto links = ring_of_links(j, count, s, r);
                std::size_t wrong = 0;
                const std::uint64_t n = count > 10'000 ? std::min<std::uint64_t>(steps, 8) : steps;
                for (std::uint64_t k = 1; k <= n; ++k) step_in_order(links, k, wrong);
                EXPECT_EQ(wrong, 0u) << links.front().describe();
                j.barrier(); // a farewell of an early rank would take the place of a message
            }
        }
    }
}

/// Only tokens come back: a sender that never pauses, a receiver that is slow, and vice versa.
inline void expect_one_way_stream(const job& j, std::uint64_t steps, std::size_t count = 500) {
    if (j.ranks() < 2) GTEST_SKIP() << "needs two ranks";
    for (const bool in_slab : {true, false}) {
        for (const int sleeper : {0, 1}) {
            const auto dawdle = [&](std::uint64_t k) {
                if (j.rank() == sleeper && k % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
            };
            words buffer(count, 0, home(j, in_slab));
            std::size_t wrong = 0;
            if (j.rank() == 0) {
                connection c(j, 1, {"stream"});
                send_window<std::uint64_t> w(c, buffer);
                c.connect();
                for (std::uint64_t k = 1; k <= steps; ++k) {
                    dawdle(k);
                    for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = word(0, 0, k, i);
                    ASSERT_EQ(w.init(), status::ok);
                    ASSERT_EQ(w.post(), status::ok);
                    ASSERT_EQ(w.wait(), status::ok) << w.pending();
                }
                j.barrier();
            } else if (j.rank() == 1) {
                connection c(j, 0, {"stream"});
                recv_window<std::uint64_t> w(c, buffer);
                c.connect();
                for (std::uint64_t k = 1; k <= steps; ++k) {
                    dawdle(k);
                    ASSERT_EQ(w.init(), status::ok);
                    ASSERT_EQ(w.post(), status::ok);
                    ASSERT_EQ(w.wait(), status::ok) << w.pending();
                    dawdle(k);
                    for (std::size_t i = 0; i < buffer.size(); ++i) wrong += buffer[i] != word(0, 0, k, i);
                }
                j.barrier();
            } else {
                j.barrier();
            }
            EXPECT_EQ(wrong, 0u);
        }
    }
}

/// Large messages one way, in whole and in part, until the receiver's window reports `seen`. The receiver has nothing
/// else to do, so it copies some of them. The sender's array changes as soon as its wait is over.
inline void expect_pieces_until(const std::string& seen, const job& j, std::span<std::uint64_t> buffer) {
    const std::size_t count = buffer.size();
    connection c(j, 1 - j.rank());
    std::vector<send_window<std::uint64_t>> to;
    std::vector<recv_window<std::uint64_t>> from;
    if (j.rank() == 0)
        to.emplace_back(c, std::span<const std::uint64_t>(buffer));
    else
        from.emplace_back(c, buffer);
    c.connect();
    const auto send = [&](std::uint64_t k) {
        for (std::size_t i = 0; i < count; ++i) buffer[i] = word(0, 0, k, i);
        ASSERT_EQ(to[0].init(), status::ok);
        ASSERT_EQ(to[0].post(part(count, 0, k)), status::ok);
        ASSERT_EQ(to[0].wait(), status::ok) << to[0].pending();
    };
    std::size_t wrong = 0;
    const auto receive = [&](std::uint64_t k) {
        ASSERT_EQ(from[0].start(), status::ok);
        while (k % 2 == 0 && !from[0].test()) {
        }
        ASSERT_EQ(from[0].wait(), status::ok) << from[0].pending();
        wrong += from[0].count() != part(count, 0, k);
        for (std::size_t i = 0; i < from[0].count(); ++i) wrong += buffer[i] != word(0, 0, k, i);
    };
    const auto is_seen = [&] { // on a busy machine a sender may be done before its receiver looks
        const bool here = j.rank() == 1 && from[0].describe().find(seen) != std::string::npos;
        return j.gather(std::string(1, here ? '1' : '0'))[1] == "1";
    };
    std::uint64_t k = 0;
    do {
        for (int i = 0; i < 20; ++i) j.rank() == 0 ? send(++k) : receive(++k);
    } while (!is_seen() && k < 20'000);
    for (int i = 0; i < 20; ++i) j.rank() == 0 ? send(++k) : receive(++k); // in any case, it continues
    EXPECT_LT(k, 20'000u) << (j.rank() == 0 ? to[0].describe() : from[0].describe());
    EXPECT_EQ(wrong, 0u);
}

inline void expect_a_waiting_receiver_copies_pieces(const job& j, bool from_slab) {
    words buffer(20'000, 0, home(j, from_slab || j.rank() == 1));
    expect_pieces_until(" so far)", j, buffer);
}

/// A message whose receive comes late makes progress while its sender waits for another, as with MPI_Isend.
inline void expect_posted_messages_move_in_any_wait(const job& j, std::size_t count = 5000) {
    if (j.ranks() >= 2 && j.rank() < 2) {
        words first(count, 0, &j.memory()), second(count, 0, &j.memory());
        connection c(j, 1 - j.rank());
        if (j.rank() == 0) {
            send_window<std::uint64_t> question(c, first);
            recv_window<std::uint64_t> answer(c, second);
            c.connect();
            for (std::uint64_t k = 1; k <= 50; ++k) {
                first.back() = k;
                ASSERT_EQ(question.init(), status::ok);
                ASSERT_EQ(question.post(), status::ok);
                ASSERT_EQ(answer.init(), status::ok);
                ASSERT_EQ(answer.post(), status::ok);
                ASSERT_EQ(answer.wait(), status::ok) << answer.pending();
                EXPECT_EQ(second.back(), 2 * k);
                ASSERT_EQ(question.wait(), status::ok) << question.pending();
            }
        } else {
            recv_window<std::uint64_t> question(c, first);
            send_window<std::uint64_t> answer(c, second);
            c.connect();
            for (std::uint64_t k = 1; k <= 50; ++k) {
                std::this_thread::sleep_for(std::chrono::microseconds(100));
                ASSERT_EQ(question.init(), status::ok);
                ASSERT_EQ(question.post(), status::ok);
                ASSERT_EQ(question.wait(), status::ok) << question.pending();
                second.back() = 2 * first.back();
                ASSERT_EQ(answer.init(), status::ok);
                ASSERT_EQ(answer.post(), status::ok);
                ASSERT_EQ(answer.wait(), status::ok) << answer.pending();
            }
        }
        j.barrier();
    } else {
        j.barrier();
    }
}

/// A small window has eight slots and a token in every fourth step: a sender can send seven messages before its receiver
/// has begun, and four more while that is in step 5. Each arrives unchanged.
inline void expect_small_windows_run_ahead(const job& j, std::size_t count) {
    constexpr std::uint64_t begun = 5, told = 4, ahead = 7;
    words buffer(count, 0, &j.memory());
    connection c(j, 1 - j.rank(), {"ahead"});
    if (j.rank() == 0) {
        send_window<std::uint64_t> w(c, buffer);
        c.connect();
        std::uint64_t k = 0;
        const auto post = [&] {
            for (std::size_t i = 0; i < count; ++i) buffer[i] = word(0, 0, k, i);
            EXPECT_EQ(w.init(), status::ok);
            EXPECT_EQ(w.post(), status::ok);
        };
        while (++k <= ahead) { // before the receiver has begun
            post();
            ASSERT_TRUE(w.test()) << k;
            ASSERT_EQ(w.wait(), status::ok);
        }
        post();
        EXPECT_FALSE(w.test()) << "its slot is still taken";
        j.barrier();
        ASSERT_EQ(w.wait(), status::ok) << w.pending();
        while (++k <= told + ahead) {
            post();
            ASSERT_EQ(w.wait(), status::ok) << w.pending();
        }
        post();
        EXPECT_FALSE(w.test()) << "nobody has told that step 5 has begun";
        j.barrier(); // the receiver leaves
        j.barrier();
        status after = w.wait();
        if (after == status::ok) { // it left in the barrier, while the receiver did; the next one can't
            (void)w.init();
            (void)w.post();
            after = w.wait();
        }
        EXPECT_EQ(after, status::aborted);
    } else {
        std::optional<recv_window<std::uint64_t>> there(std::in_place, c, buffer);
        recv_window<std::uint64_t>& w = *there;
        c.connect();
        j.barrier();
        for (std::uint64_t k = 1; k <= begun; ++k) {
            ASSERT_EQ(w.start(), status::ok);
            ASSERT_EQ(w.wait(), status::ok) << w.pending();
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < count; ++i) wrong += buffer[i] != word(0, 0, k, i);
            EXPECT_EQ(wrong, 0u) << k;
        }
        j.barrier();
        there.reset();
        j.barrier();
    }
}

/// Between init and wait nothing allocates.
inline void expect_no_allocation(const job& j, const std::vector<std::size_t>& counts = {1000, 5000}) {
    for (const std::size_t count : counts) {
        auto links = ring_of_links(j, count, kind::in_slab, kind::in_slab);
        std::size_t wrong = 0;
        for (std::uint64_t k = 1; k <= 3; ++k) step_in_order(links, k, wrong);
        j.barrier();
        const std::uint64_t made = allocations_in([&] {
            for (std::uint64_t k = 4; k <= 50; ++k) step_in_order(links, k, wrong);
        });
        EXPECT_EQ(made, 0U);
        EXPECT_EQ(wrong, 0u);
        j.barrier();
    }
}

} // namespace halocline_test
