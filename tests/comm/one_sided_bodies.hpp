// SPDX-License-Identifier: Apache-2.0
// Test bodies for one-sided communication, with ranks as threads and as processes.
#pragma once

#include "named_transport.hpp"

#include <halocline/comm/one_sided.hpp>
#include <halocline/comm/remote_call.hpp>
#include <halocline/comm/slab.hpp>
#include <halocline/comm/slab_full.hpp>
#include <halocline_test/allocation_counter.hpp>
#include <halocline_test/refusal.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory_resource>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

namespace halocline_test {

using namespace halocline;
using namespace halocline::comm;

inline std::vector<int> all_ranks(const job& j) {
    std::vector<int> ranks(static_cast<std::size_t>(j.ranks()));
    std::iota(ranks.begin(), ranks.end(), 0);
    std::rotate(ranks.begin(), ranks.begin() + j.rank(), ranks.end()); // another order on each rank
    return ranks;
}

inline std::uint64_t put_word(int from, int to, std::uint64_t epoch, std::size_t place) {
    return ((epoch * 64 + static_cast<std::uint64_t>(from)) * 64 + static_cast<std::uint64_t>(to)) * 4096 + place;
}

/// Epochs with any number of words at any time: what a target reads after wait() is what each origin put in that epoch,
/// although origins run ahead or are late.
inline void expect_epochs(const job& j, std::uint64_t epochs) {
    constexpr std::size_t most = 300;
    const std::vector<int> near = all_ranks(j);
    const auto ranks = static_cast<std::size_t>(j.ranks());
    exposure e(j, near, ranks * most * 8, {"epochs"});
    const auto words_of = [](int from, int to, std::uint64_t k) { // both ends know the number
        return static_cast<std::size_t>(
            (k * 7919 + static_cast<unsigned>(from) * 131 + static_cast<unsigned>(to) * 17) % most);
    };
    std::mt19937 random(static_cast<unsigned>(j.rank()));
    std::vector<std::uint64_t> out(most);
    std::size_t wrong = 0;
    const std::uint64_t before = allocations();
    for (std::uint64_t k = 1; k <= epochs; ++k) {
        if (random() % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
        e.post();
        e.start();
        for (std::size_t n = 0; n < near.size(); ++n) {
            ASSERT_EQ(e.await(n), status::ok) << e.pending();
            const std::size_t words = words_of(j.rank(), near[n], k);
            for (std::size_t i = 0; i < words; ++i) out[i] = put_word(j.rank(), near[n], k, i);
            e.put(n, std::as_bytes(std::span(out).first(words)), static_cast<std::size_t>(j.rank()) * most * 8);
        }
        ASSERT_EQ(e.complete(), status::ok) << e.pending();
        ASSERT_EQ(e.wait(), status::ok) << e.pending();
        const auto* in = reinterpret_cast<const std::uint64_t*>(e.memory().data());
        for (int from = 0; from < j.ranks(); ++from) {
            for (std::size_t i = 0; i < words_of(from, j.rank(), k); ++i) {
                wrong += in[static_cast<std::size_t>(from) * most + i] != put_word(from, j.rank(), k, i);
            }
        }
    }
    const std::uint64_t after = allocations();
    EXPECT_EQ(wrong, 0u);
    if (j.launcher() != "threads") {
        EXPECT_EQ(after, before); // ranks that are threads count each other's
    }
    j.barrier();
}

/// Target and origin epochs are independent: rank 0 only writes, running as far ahead as it can; the others only read.
inline void expect_one_way_epochs(const job& j, std::uint64_t epochs) {
    if (j.ranks() < 2) GTEST_SKIP() << "needs two ranks";
    std::vector<int> near{0};
    if (j.rank() == 0) {
        near.clear();
        for (int r = 1; r < j.ranks(); ++r) near.push_back(r);
    }
    exposure e(j, near, j.rank() == 0 ? 0 : 4000, {"one way"});
    std::vector<std::uint64_t> out(500);
    std::size_t wrong = 0;
    for (std::uint64_t k = 1; k <= epochs; ++k) {
        if (j.rank() == 0) {
            std::fill(out.begin(), out.end(), k);
            e.start();
            std::vector<bool> served(near.size(), false);
            for (std::size_t left = near.size(); left > 0;) { // those that are ready first
                for (std::size_t n = 0; n < near.size(); ++n) {
                    if (served[n] || !e.ready(n)) continue;
                    ASSERT_EQ(e.put(n, std::as_bytes(std::span(out)), 0), status::ok);
                    served[n] = true;
                    --left;
                }
                std::this_thread::yield();
            }
            ASSERT_EQ(e.complete(), status::ok);
        } else {
            e.post();
            while (k % 2 == 0 && !e.test()) std::this_thread::yield();
            ASSERT_EQ(e.wait(), status::ok) << e.pending();
            const auto* in = reinterpret_cast<const std::uint64_t*>(e.memory().data());
            for (std::size_t i = 0; i < 500; ++i) wrong += in[i] != k;
        }
    }
    EXPECT_EQ(wrong, 0u);
    j.barrier();
}

/// Whoever sees a counter sees the bytes put before it; each neighbour has a part of the memory and a counter.
inline void expect_signals_follow_their_bytes(const job& j) {
    const std::vector<int> near = all_ranks(j);
    const auto ranks = static_cast<std::size_t>(j.ranks());
    constexpr std::uint64_t rounds = 200;
    constexpr std::size_t slot = 64;
    exposure e(j, near, ranks * rounds * slot, {"signals", j.ranks()});
    std::size_t wrong = 0;
    for (std::uint64_t k = 0; k < rounds; ++k) {
        const std::vector<std::uint64_t> out(slot / 8, 1000 * k + static_cast<std::uint64_t>(j.rank()));
        for (std::size_t n = 0; n < near.size(); ++n) {
            const std::size_t place = (static_cast<std::size_t>(j.rank()) * rounds + k) * slot;
            ASSERT_EQ(e.put_signal(n, std::as_bytes(std::span(out)), place, j.rank()), status::ok);
        }
        const int from = static_cast<int>(k) % j.ranks();
        ASSERT_EQ(e.wait_signals(from, k + 1), status::ok) << e.pending();
        const auto* in = reinterpret_cast<const std::uint64_t*>(e.memory().data() +
                                                                (static_cast<std::size_t>(from) * rounds + k) * slot);
        for (std::size_t i = 0; i < slot / 8; ++i) wrong += in[i] != 1000 * k + static_cast<std::uint64_t>(from);
    }
    for (int r = 0; r < j.ranks(); ++r) {
        ASSERT_EQ(e.wait_signals(r, rounds), status::ok);
        EXPECT_EQ(e.signals(r), rounds);
    }
    EXPECT_EQ(wrong, 0u);
    j.barrier();
}

/// Puts of all sizes around what a network takes in one piece, at odd offsets.
inline void expect_puts_of_any_size_arrive(const job& j) {
    const std::vector<int> near = all_ranks(j);
    const auto ranks = static_cast<std::size_t>(j.ranks());
    constexpr std::size_t most = 200'001;
    exposure e(j, near, ranks * most, {"sizes"});
    const auto byte_of = [](int from, int to, std::size_t size, std::size_t i) {
        return static_cast<std::byte>(static_cast<std::size_t>(17 * from + to) + size + i * 7);
    };
    std::vector<std::byte> out(most);
    for (const std::size_t size : {0ul, 1ul, 7ul, 64ul, 8167ul, 8168ul, 8169ul, 16'336ul, 65'537ul, most}) {
        e.post();
        e.start();
        for (std::size_t n = 0; n < near.size(); ++n) {
            ASSERT_EQ(e.await(n), status::ok) << e.pending();
            for (std::size_t i = 0; i < size; ++i) out[i] = byte_of(j.rank(), near[n], size, i);
            ASSERT_EQ(e.put(n, std::span(out).first(size), static_cast<std::size_t>(j.rank()) * most), status::ok);
        }
        ASSERT_EQ(e.complete(), status::ok) << e.pending();
        ASSERT_EQ(e.wait(), status::ok) << e.pending();
        std::size_t wrong = 0;
        for (int from = 0; from < j.ranks(); ++from) {
            for (std::size_t i = 0; i < size; ++i)
                wrong += e.memory()[static_cast<std::size_t>(from) * most + i] != byte_of(from, j.rank(), size, i);
        }
        EXPECT_EQ(wrong, 0u) << size;
    }
    j.barrier();
}

/// Puts of at least `direct_bytes` over a network are counted as such and never copied in frames; smaller ones are.
/// `writes`: the network writes into the target's memory, and each of these puts is one write.
inline void expect_large_puts_go_straight(const job& j, bool writes, bool into_socket) {
    constexpr std::size_t least = 20'000, most = 1'000'001;
    const std::vector<int> near = all_ranks(j);
    const auto ranks = static_cast<std::size_t>(j.ranks());
    exposure e(j, near, ranks * most, {.name = "large", .direct_bytes = least});
    const auto is_far = [&](int r) {
        const std::string& by = j.members()[r].transport;
        return by != "self" && by != "shm";
    };
    const auto far = static_cast<std::uint64_t>(std::count_if(near.begin(), near.end(), is_far));
    const auto byte_of = [](int from, std::size_t size, std::size_t i) {
        return static_cast<std::byte>(static_cast<std::size_t>(31 * from) + size + i * 7 + i / 251);
    };
    std::pmr::vector<std::byte> in_slab(most, &j.memory());
    std::vector<std::byte> on_heap(most);
    std::uint64_t large = 0, written = 0;
    for (const std::size_t size : {least - 1, least, least + 1, std::size_t{100'003}, most}) {
        for (const std::span<std::byte> out : {std::span(in_slab), std::span(on_heap)}) {
            for (std::size_t i = 0; i < size; ++i) out[i] = byte_of(j.rank(), size, i);
            e.post();
            e.start();
            for (std::size_t n = 0; n < near.size(); ++n) {
                ASSERT_EQ(e.await(n), status::ok) << e.pending();
                ASSERT_EQ(e.put(n, out.first(size), static_cast<std::size_t>(j.rank()) * most), status::ok);
            }
            std::fill(out.begin(), out.end(), std::byte{0xee}); // `out` may be changed now
            ASSERT_EQ(e.complete(), status::ok) << e.pending();
            ASSERT_EQ(e.wait(), status::ok) << e.pending();
            std::size_t wrong = 0;
            for (int from = 0; from < j.ranks(); ++from) {
                const std::byte* in = e.memory().data() + static_cast<std::size_t>(from) * most;
                for (std::size_t i = 0; i < size; ++i) wrong += in[i] != byte_of(from, size, i);
            }
            EXPECT_EQ(wrong, 0u) << size;
            large += size >= least ? far : 0;
            written += size >= least ? far * writes_of(size, into_socket) : 0;
            EXPECT_EQ(e.counts().direct, large) << size;
        }
    }
    EXPECT_EQ(e.counts().writes, writes ? written : 0u);
    constexpr std::uint64_t frames_of_small = 2 * 3; // of at most 8 KiB
    EXPECT_EQ(e.counts().framed, far * frames_of_small);
    EXPECT_EQ(e.counts().not_registered, 0u);
    j.barrier();
}

/// A block that each neighbour overwrites again and again, each time after it has heard that the last one was read.
inline void expect_signals_follow_large_puts(const job& j) {
    constexpr std::size_t words = 40'000;
    constexpr std::uint64_t rounds = 10;
    const std::vector<int> near = all_ranks(j);
    const auto ranks = static_cast<std::size_t>(j.ranks());
    // Counters: one for each neighbour's blocks, and one for the blocks that it has read.
    exposure e(j, near, ranks * words * 8, {"large signals", 2 * j.ranks()});
    std::vector<std::uint64_t> out(words);
    std::size_t wrong = 0;
    for (std::uint64_t k = 1; k <= rounds; ++k) {
        for (std::size_t i = 0; i < words; ++i) out[i] = put_word(j.rank(), 0, k, i % 4096);
        for (std::size_t n = 0; n < near.size(); ++n) {
            ASSERT_EQ(e.wait_signals(j.ranks() + near[n], k - 1), status::ok) << e.pending();
            const std::size_t place = static_cast<std::size_t>(j.rank()) * words * 8;
            ASSERT_EQ(e.put_signal(n, std::as_bytes(std::span(out)), place, j.rank()), status::ok) << e.pending();
        }
        for (std::size_t n = 0; n < near.size(); ++n) {
            ASSERT_EQ(e.wait_signals(near[n], k), status::ok) << e.pending();
            const auto* in =
                reinterpret_cast<const std::uint64_t*>(e.memory().data()) + static_cast<std::size_t>(near[n]) * words;
            for (std::size_t i = 0; i < words; ++i) wrong += in[i] != put_word(near[n], 0, k, i % 4096);
            ASSERT_EQ(e.put_signal(n, {}, 0, j.ranks() + j.rank()), status::ok);
        }
    }
    EXPECT_EQ(wrong, 0u);
    j.barrier();
}

struct question {
    std::uint64_t number;
    double values[8];
};

/// Calls arrive once and in order per pair, even if there are more than there is room for; functions answer by calling
/// back.
inline void expect_calls_in_order(const job& j, std::uint64_t calls) {
    const std::vector<int> near = all_ranks(j);
    std::vector<std::uint64_t> asked(near.size(), 0), answered(near.size(), 0);
    std::uint64_t wrong = 0;
    remote_functions table;
    remote_calls* ring = nullptr;
    std::vector<std::pair<std::size_t, std::uint64_t>> owed; // answers for which there was no room
    const auto answer = table.add<std::uint64_t>(
        "answer", [&](std::size_t from, const std::uint64_t& number) { wrong += number != ++answered[from]; });
    const auto ask = table.add<question>("ask", [&](std::size_t from, const question& q) {
        wrong += q.number != ++asked[from];
        for (const double v : q.values) wrong += v != 0.5 * static_cast<double>(q.number);
        if (!owed.empty() || !ring->try_call(from, answer, q.number)) owed.emplace_back(from, q.number);
    });
    remote_calls r(j, near, table, 5);
    ring = &r;
    const auto pay = [&] {
        while (!owed.empty() && r.try_call(owed.front().first, answer, owed.front().second)) owed.erase(owed.begin());
    };
    for (std::uint64_t k = 1; k <= calls; ++k) {
        question q{k, {}};
        std::fill(std::begin(q.values), std::end(q.values), 0.5 * static_cast<double>(k));
        for (std::size_t n = 0; n < near.size(); ++n) {
            if (k % 2 == 0) {
                ASSERT_EQ(r.call(n, ask, q), status::ok);
                continue;
            }
            while (!r.try_call(n, ask, q)) {
                r.progress();
                pay();
            }
        }
    }
    const auto all_there = [&] {
        pay();
        return owed.empty() &&
               std::all_of(answered.begin(), answered.end(), [&](std::uint64_t a) { return a == calls; }) &&
               std::all_of(asked.begin(), asked.end(), [&](std::uint64_t a) { return a == calls; });
    };
    ASSERT_EQ(r.progress_until(all_there), status::ok);
    EXPECT_EQ(wrong, 0u);
    j.barrier();
}

/// A function of a larger table is refused by the rank that is called.
inline void expect_calls_of_another_table_are_told(const job& j) {
    remote_functions large, small;
    const auto nothing = [](std::size_t, int) {};
    large.add<int>("one", nothing);
    const auto second = large.add<int>("two", nothing);
    small.add<int>("one", nothing);
    const std::vector<int> near = all_ranks(j);
    remote_calls r(j, near, small);
    for (std::size_t n = 0; n < near.size(); ++n) ASSERT_TRUE(r.try_call(n, second, 0));
    for (std::size_t n = 0; n < near.size(); ++n) {
        EXPECT_NE(refusal([&] {
                      while (r.progress() == 0) {
                      }
                  }).find("calls function 1 here, of a table of 1"),
                  std::string::npos);
    }
    j.barrier();
}

inline void expect_bad_one_sided_input_is_told(const job& j) {
    const std::size_t used = j.memory().used();
    const std::vector<int> twice{0, 0}, nobody{99};
    EXPECT_NE(refusal([&] { exposure(j, twice, 8, {"two"}); }).find("names neighbour 0 twice"), std::string::npos);
    EXPECT_NE(refusal([&] { exposure(j, nobody, 8, {"none"}); }).find("99 is not a rank"), std::string::npos);
    if (j.ranks() > 1) {
        EXPECT_NE(refusal([&] {
                      exposure(j, all_ranks(j), 8, {"unlike", j.rank()});
                  }).find("ranks disagree"),
                  std::string::npos);
        const std::vector<int> onward{(j.rank() + 1) % j.ranks()};
        if (j.ranks() > 2) {
            EXPECT_NE(refusal([&] { exposure(j, onward, 8, {"ring"}); }).find(" names rank "), std::string::npos);
        }
    }
    for (const std::size_t less : {0, 8, 200}) { // counters and control lines need more
        try {
            exposure(j, all_ranks(j), ~std::size_t{0} - less, {"huge", 1});
            ADD_FAILURE() << less << " less than all there can be";
        } catch (const slab_full& e) {
            EXPECT_NE(std::string(e.what()).find("need 17592186044416 MiB"), std::string::npos) << e.what();
        }
    }
    if (j.ranks() > 1) { // one rank has no room, so that the others have to do without the memory they got
        EXPECT_THROW(exposure(j, all_ranks(j), j.rank() == 1 ? std::size_t{1} << 46 : 4096, {"uneven"}), slab_full);
    }
    // Less, if memory that the job's start left to peers over a network has come back.
    EXPECT_LE(j.memory().used(), used) << "what was refused keeps memory";
    EXPECT_NE(refusal([&] { remote_calls(j, all_ranks(j), {}, ~std::size_t{0}); }).find("room for"), std::string::npos);
    remote_functions table;
    const auto nothing = table.add<int>("nothing", [](std::size_t, int) {});
    remote_calls calls(j, all_ranks(j), std::move(table));
    EXPECT_EQ(calls.call(99, nothing, 1), status::misused) << "no such neighbour";
    EXPECT_FALSE(calls.try_call(99, nothing, 1));
    exposure e(j, all_ranks(j), 64, {"small", 1});
    const std::byte some[65]{};
    const auto expect_said = [](const exposure& misused, const std::string& call) {
        EXPECT_NE(misused.pending().find(": " + call), std::string::npos) << misused.pending();
    };
    EXPECT_EQ(e.put_signal(0, some, 0, 0), status::misused) << "one byte too many";
    expect_said(e, "put() beyond the end of the neighbour's memory");
    EXPECT_EQ(e.wait(), status::misused) << "sticky";
    EXPECT_NE(refusal([&] {
                  exposure(j, all_ranks(j), 8, {"negative", -1});
              }).find("'negative': -1 signals; 0 or more are possible"),
              std::string::npos);
    exposure not_started(j, all_ranks(j), 64, {"order"}), not_posted(j, all_ranks(j), 64, {"order"}),
        twice_started(j, all_ranks(j), 64, {"order"}), twice_posted(j, all_ranks(j), 64, {"order"});
    EXPECT_EQ(not_started.complete(), status::misused);
    expect_said(not_started, "complete() without start()");
    EXPECT_EQ(not_posted.wait(), status::misused);
    expect_said(not_posted, "wait() without post()");
    twice_started.start();
    twice_started.start();
    EXPECT_EQ(twice_started.state(), status::misused);
    expect_said(twice_started, "start() before complete() of the last epoch");
    twice_posted.post();
    twice_posted.post();
    EXPECT_EQ(twice_posted.wait(), status::misused);
    expect_said(twice_posted, "post() before wait() of the last epoch");
    for (const int no_signal : {-1, 1}) {
        exposure signalled(j, all_ranks(j), 64, {"signalled", 1}), awaited(j, all_ranks(j), 64, {"awaited", 1});
        EXPECT_EQ(signalled.put_signal(0, {}, 0, no_signal), status::misused);
        expect_said(signalled, "a signal was named beyond exposure_options::signals");
        EXPECT_EQ(awaited.wait_signals(no_signal, 1), status::misused);
        expect_said(awaited, "a signal was named beyond exposure_options::signals");
    }
    exposure outside(j, all_ranks(j), 64, {"outside"}), early(j, all_ranks(j), 64, {"early"});
    const std::span one(some, 1);
    EXPECT_EQ(outside.put(0, one, 0), status::misused);
    expect_said(outside, "put() without start()");
    early.start();
    EXPECT_EQ(early.put(0, one, 0), status::misused);
    expect_said(early, "put() to a neighbour that has not posted");
    exposure to_nobody(j, all_ranks(j), 64, {"nobody"}), asks_nobody(j, all_ranks(j), 64, {"nobody"});
    to_nobody.start();
    EXPECT_EQ(to_nobody.await(99), status::misused);
    expect_said(to_nobody, "a neighbour was named that is not in the list");
    EXPECT_TRUE(asks_nobody.ready(99));
    EXPECT_EQ(asks_nobody.state(), status::misused);
    j.barrier();
}

/// A neighbour that leaves ends the waits for it.
inline void expect_leaving_ends_waits(const job& j) {
    std::vector<int> near;
    if (j.ranks() > 1 && j.rank() < 2) near.push_back(1 - j.rank());
    {
        exposure e(j, near, 64, {"left"});
        if (j.rank() == 0 && !near.empty()) {
            e.post();
            EXPECT_EQ(e.wait(), status::aborted);
            EXPECT_EQ(e.pending(), "exposed memory 'left', epoch 1 as target, 0 as origin: rank 1 to complete epoch 1");
            EXPECT_EQ(e.complete(), status::aborted);
            EXPECT_EQ(e.put_signal(0, {}, 0, 99), status::aborted) << "what was wrong first is told";
            EXPECT_EQ(e.wait_signals(99, 1), status::aborted);
        }
    }
    {
        exposure e(j, near, 64, {"no signal", 1});
        if (j.rank() == 0 && !near.empty()) {
            EXPECT_EQ(e.wait_signals(0, 1), status::aborted);
            EXPECT_EQ(e.pending(), "exposed memory 'no signal', epoch 0 as target, 0 as origin: signal 0 to reach 1");
        }
    }
    j.barrier();
}

} // namespace halocline_test
