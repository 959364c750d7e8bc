// SPDX-License-Identifier: Apache-2.0
// Test bodies for connections of windows: their order, mismatched ends, farewells. See window_bodies.hpp.
#pragma once

#include "window_links.hpp"

#include <halocline/comm/global_sum.hpp>
#include <halocline_test/refusal.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace halocline_test {

/// Each rank connects to its peers in its own order; a cycle of ranks that wait for one another would hang.
inline void expect_any_order_of_connections(const job& j) {
    std::vector<int> peers(static_cast<std::size_t>(j.ranks()));
    std::iota(peers.begin(), peers.end(), 0);
    for (unsigned round = 0; round < 5; ++round) {
        std::mt19937 random(100 * round + static_cast<unsigned>(j.rank()));
        std::vector<std::uint64_t> in(peers.size()), out(peers.size());
        std::list<connection> connections;
        std::list<send_window<std::uint64_t>> sends;
        std::list<recv_window<std::uint64_t>> recvs;
        std::shuffle(peers.begin(), peers.end(), random);
        if (round > 0)
            std::rotate(peers.begin(), std::find(peers.begin(), peers.end(), (j.rank() + 1) % j.ranks()), peers.end());
        for (const int p : peers) {
            connection& c = connections.emplace_back(j, p);
            sends.emplace_back(c, std::span<const std::uint64_t>(&out[p], 1));
            recvs.emplace_back(c, std::span<std::uint64_t>(&in[p], 1));
        }
        for (connection& c : connections) c.connect();
        for (auto& w : recvs) EXPECT_EQ(w.init(), status::ok);
        for (auto& w : sends) EXPECT_EQ(w.init(), status::ok);
        for (const int p : peers) out[p] = static_cast<std::uint64_t>(1000 * j.rank() + p);
        for (auto& w : sends) EXPECT_EQ(w.post(), status::ok);
        for (auto& w : recvs) EXPECT_EQ(w.post(), status::ok);
        for (auto& w : recvs) EXPECT_EQ(w.wait(), status::ok);
        for (auto& w : sends) EXPECT_EQ(w.wait(), status::ok);
        for (const int p : peers) EXPECT_EQ(in[p], static_cast<std::uint64_t>(1000 * p + j.rank()));
        j.barrier();
    }
}

/// Several connections between the same two ranks without tags, including connections of a rank with itself: first with
/// first, second with second.
inline void expect_connections_of_a_pair_keep_their_order(const job& j) {
    const int other = j.rank() ^ 1;
    for (const int peer : {j.rank(), other < j.ranks() ? other : j.rank()}) {
        std::vector<std::uint64_t> in(4), out(4);
        std::list<connection> connections;
        std::list<send_window<std::uint64_t>> sends;
        std::list<recv_window<std::uint64_t>> recvs;
        for (std::size_t i = 0; i < 4; ++i) {
            connection& c = connections.emplace_back(j, peer);
            out[i] = 10 * static_cast<std::uint64_t>(j.rank()) + i;
            sends.emplace_back(c, std::span<const std::uint64_t>(&out[i], 1));
            recvs.emplace_back(c, std::span<std::uint64_t>(&in[i], 1));
        }
        for (connection& c : connections) c.connect();
        for (auto& w : recvs) ASSERT_EQ(w.init(), status::ok);
        for (auto& w : sends) ASSERT_EQ(w.init(), status::ok);
        for (auto& w : sends) ASSERT_EQ(w.post(), status::ok);
        for (auto& w : recvs) ASSERT_EQ(w.post(), status::ok);
        for (auto& w : recvs) ASSERT_EQ(w.wait(), status::ok);
        for (auto& w : sends) ASSERT_EQ(w.wait(), status::ok);
        for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(in[i], 10 * static_cast<std::uint64_t>(peer) + i);
        j.barrier();
    }
}

/// One end may connect long after the other, which neither waits for it nor gives up.
inline void expect_the_first_message_waits_for_a_late_end(const job& j) {
    if (j.ranks() >= 2 && j.rank() < 2) {
        for (const int late : {0, 1}) {
            words out(100, static_cast<std::uint64_t>(10 + late), &j.memory()), in(100, 0, &j.memory());
            connection c(j, 1 - j.rank(), {"late"});
            send_window<std::uint64_t> send(c, out);
            recv_window<std::uint64_t> recv(c, in);
            // Longer than a reliable connection tries to reach a peer that is not there.
            if (j.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(1200));
            c.connect();
            ASSERT_EQ(recv.start(), status::ok);
            ASSERT_EQ(send.start(), status::ok);
            ASSERT_EQ(recv.wait(), status::ok) << recv.pending();
            ASSERT_EQ(send.wait(), status::ok) << send.pending();
            EXPECT_EQ(in, out);
        }
    }
    j.barrier();
}

/// Both ends refuse, and each message contains both values.  Pre: rank 0 or 1.
inline void expect_other_sizes_are_refused(const job& j) {
    std::vector<double> data(7);
    connection c(j, 1 - j.rank(), {"sizes"});
    const std::string text = refusal([&] {
        if (j.rank() == 0) {
            send_window<double> w(c, data);
            c.connect();
        } else {
            recv_window<double> w(c, std::span(data).first(5));
            c.connect();
        }
    });
    EXPECT_NE(text.find("7 of float64"), std::string::npos) << text;
    EXPECT_NE(text.find("5 of float64"), std::string::npos) << text;
    EXPECT_NE(text.find("'sizes'"), std::string::npos) << text;
}

inline void expect_other_types_are_refused(const job& j) {
    const std::vector<float> data(8);
    connection c(j, 1 - j.rank(), {"types"});
    const std::string text = refusal([&] {
        if (j.rank() == 0) {
            send_window<float> w(c, data);
            c.connect();
        } else {
            buffered_recv_window<double> w(c, 8);
            c.connect();
        }
    });
    EXPECT_NE(text.find("8 of float32"), std::string::npos) << text;
    EXPECT_NE(text.find("8 of float64"), std::string::npos) << text;
}

inline void expect_senders_alone_are_refused(const job& j) {
    const std::vector<float> data(8);
    connection c(j, 1 - j.rank(), {"numbers"});
    const std::string text = refusal([&] {
        send_window<float> w(c, data); // on both ranks, so nobody receives
        c.connect();
    });
    EXPECT_NE(text.find("1 send and 0 receive windows here, 1 send and 0 receive windows there"), std::string::npos)
        << text;
}

/// An end with fewer windows also gets an error, if it connects after the other.
inline void expect_fewer_windows_are_refused(const job& j) {
    const std::vector<float> out(8);
    const std::array other{1 - j.rank()};
    bool both = false;
    for (int attempt = 1; !both && attempt <= 20; ++attempt) {
        connection c(j, other[0], {"fewer"});
        std::vector<float> in(8);
        const send_window<float> sends(c, out);
        std::unique_ptr<recv_window<float>> receives;
        if (j.rank() == 0) receives = std::make_unique<recv_window<float>>(c, in);
        if (j.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(2 * attempt));
        const std::string text = refusal([&] { c.connect(); });
        const std::string theirs = j.exchange(other, std::array{text})[0];
        both = text != "accepted" && theirs != "accepted";
        if (j.rank() == 1 && text == "accepted") continue;
        EXPECT_NE(text.find("1 send and 0 receive windows"), std::string::npos) << text;
        EXPECT_NE(text.find("1 send and 1 receive windows"), std::string::npos) << text;
    }
    EXPECT_TRUE(both);
}

/// Neither windows that both ends refused nor the others of their connection keep memory for good.  Pre: rank 0 or 1.
inline void expect_refused_windows_keep_no_memory(const job& j) {
    const std::array other{1 - j.rank()};
    const auto meet = [&] { static_cast<void>(j.exchange(other, std::array{std::string()})); };
    std::vector<std::size_t> used; // by attempt; it may include what the last ones await farewells for
    std::size_t of_one = 0;
    constexpr int attempts = 40, under_way = 12; // farewells of so many may be on their way on a slow, loaded network
    for (int attempt = 0; attempt < attempts; ++attempt) {
        meet();
        used.push_back(j.memory().used());
        connection c(j, other[0], {"unlike"});
        words refused_in(j.rank() == 0 ? 30'000 : 40'000, 0, &j.memory()),
            refused_out(refused_in.size(), 0, &j.memory());
        words in(5000, 0, &j.memory()), out(5000, 0, &j.memory());
        const recv_window<std::uint64_t> receives_refused(c, refused_in);
        const send_window<std::uint64_t> sends_refused(c, refused_out);
        const recv_window<std::uint64_t> receives(c, in);
        const send_window<std::uint64_t> sends(c, out);
        of_one = 2 * (refused_in.size() + in.size()) * sizeof(std::uint64_t);
        meet(); // so that both know of all windows
        EXPECT_NE(refusal([&] { c.connect(); }).find("'unlike'"), std::string::npos);
        EXPECT_NE(refusal([&] { c.connect(); }).find("an earlier connect() was refused"), std::string::npos);
    }
    EXPECT_LE(used.back(), used[2] + under_way * of_one) << of_one << " bytes each";
}

/// Both ends refuse tags that are not each other's, and each message contains both pairs; also where each rank connects
/// its first connection before it makes the other's.  Pre: rank 0 or 1.
inline void expect_wrong_tags_are_refused(const job& j) {
    const std::vector<float> data(8);
    const auto tags = [](int send, int receive) {
        return "(send tag " + std::to_string(send) + ", receive tag " + std::to_string(receive) + ")";
    };
    struct pair {
        int send, receive;
    };
    const std::pair swapped_nowhere(pair{1, 2}, pair{1, 2}), one_wrong(pair{1, 2}, pair{3, 1});
    const std::pair in_other_orders(pair{7, 7}, pair{8, 8});
    const std::array other{1 - j.rank()};
    for (const auto& [of_0, of_1] : {swapped_nowhere, one_wrong, in_other_orders}) {
        static_cast<void>(j.exchange(other, std::array{std::string()})); // both are done with the case before
        const auto [send, receive] = j.rank() == 0 ? of_0 : of_1;
        connection c(j, 1 - j.rank(), {"tags", send, receive});
        const send_window<float> w(c, data);
        const std::string text = refusal([&] { c.connect(); });
        EXPECT_NE(text.find("'tags' of rank 0 with rank 1 " + tags(of_0.send, of_0.receive)), std::string::npos)
            << text;
        EXPECT_NE(text.find("'tags' of rank 1 with rank 0 " + tags(of_1.send, of_1.receive)), std::string::npos)
            << text;
        EXPECT_NE(text.find("one end's send tag is the other's receive tag, and both ranks make all"),
                  std::string::npos)
            << text;
    }
}

inline void expect_a_missing_own_end_is_refused(const job& j) {
    const std::vector<float> data(8);
    connection c(j, j.rank(), {"self", 4, 5});
    const send_window<float> w(c, data);
    const std::string text = refusal([&] { c.connect(); });
    EXPECT_NE(text.find("this rank has not made its other end"), std::string::npos) << text;
    EXPECT_NE(text.find("(send tag 4, receive tag 5)"), std::string::npos) << text;
}

/// Ranks that make their windows late, by turns, so that each tells the other of waits that end well.
inline void expect_late_windows_are_waited_for(const job& j) {
    if (j.ranks() >= 2 && j.rank() < 2) {
        std::vector<int> out(1, j.rank()), in(1);
        for (const int late : {0, 1, 1, 0, 1}) {
            if (j.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(250));
            connection c(j, 1 - j.rank(), {"by turns", late + j.rank(), late + 1 - j.rank()});
            send_window<int> send(c, out);
            recv_window<int> recv(c, in);
            c.connect();
            EXPECT_EQ(recv.start(), status::ok);
            EXPECT_EQ(send.start(), status::ok);
            EXPECT_EQ(recv.wait(), status::ok) << recv.pending();
            EXPECT_EQ(send.wait(), status::ok) << send.pending();
            EXPECT_EQ(in[0], 1 - j.rank());
        }
    }
    j.barrier();
}

/// Each rank waits for the next one's second window, which has only one, as ranks with unlike numbers of windows towards
/// their two neighbours do; the last rank, if there are more than two, waits for a rank of the circle, which is its own
/// affair.
inline void expect_circles_are_refused(const job& j) {
    if (j.ranks() < 2) GTEST_SKIP() << "needs two ranks";
    const int ranks = std::max(2, j.ranks() - 1), here = j.rank(), next = (here + 1) % ranks;
    const std::vector<float> out(8);
    std::vector<float> in(8);
    if (here < ranks) {
        connection low(j, (here + ranks - 1) % ranks, {"low", 1, 2}), high(j, next, {"high", 2, 1});
        const send_window<float> to_low(low, out);
        const recv_window<float> from_high(high, in), second(high, in);
        const std::string text = refusal([&] { high.connect(); });
        const auto waits = [](int rank, int peer) {
            return "receive window 1 of connection 'high' of rank " + std::to_string(rank) + " with rank " +
                   std::to_string(peer) + " (send tag 2, receive tag 1)";
        };
        EXPECT_TRUE(text.starts_with(waits(here, next) + ": rank " + std::to_string(next) +
                                     " has not made its other end, and waits for the other end of " +
                                     waits(next, (next + 1) % ranks)))
            << text;
        EXPECT_NE(text.find(", which this rank has not made; one end's send tag is the other's"), std::string::npos)
            << text;
    }
    if (here == ranks || (here == 0 && j.ranks() > ranks)) {
        connection c(j, here == 0 ? ranks : 0, {"outside"});
        const send_window<float> sends(c, out);
        const recv_window<float> receives(c, in);
        EXPECT_EQ(refusal([&] { c.connect(); }), "accepted");
    }
    j.barrier();
}

/// Each rank makes its windows towards the rank below when it has connected those towards the rank above; the last one
/// makes them late.
inline void expect_late_windows_are_waited_for_in_a_row(const job& j) {
    const std::vector<float> out(8);
    std::vector<float> in(8);
    const auto join = [&](int peer, int send, int receive) {
        connection c(j, peer, {"row", send, receive});
        const send_window<float> sends(c, out);
        const recv_window<float> receives(c, in);
        EXPECT_EQ(refusal([&] { c.connect(); }), "accepted");
    };
    if (j.rank() + 1 < j.ranks())
        join(j.rank() + 1, 1, 2);
    else
        std::this_thread::sleep_for(std::chrono::milliseconds(400));
    if (j.rank() > 0) join(j.rank() - 1, 2, 1);
    j.barrier();
}

inline void expect_unlike_ends_are_refused(const job& j) {
    if (j.ranks() >= 2 && j.rank() < 2) {
        expect_other_sizes_are_refused(j);
        expect_other_types_are_refused(j);
        expect_senders_alone_are_refused(j);
        expect_fewer_windows_are_refused(j);
        expect_wrong_tags_are_refused(j);
        expect_refused_windows_keep_no_memory(j);
    }
    // What was joined at one end only does not obstruct what comes after it.
    for (int k = 0; k < 3; ++k) {
        global_sum sum(j);
        double value = 1;
        EXPECT_EQ(sum({&value, 1}), status::ok) << sum.pending();
        EXPECT_EQ(value, j.ranks());
    }
    expect_a_missing_own_end_is_refused(j);
    EXPECT_NE(refusal([&] { connection(j, j.ranks(), {"nobody"}); }).find("is not a rank"), std::string::npos);
    j.barrier();
}

inline void expect_misuse_is_told(const job& j) {
    std::vector<int> out(4, j.rank()), in(4);
    connection c(j, j.rank());
    send_window<int> w(c, out);
    recv_window<int> r(c, in);
    connection never_joined(j, j.rank());
    EXPECT_EQ(send_window<int>(never_joined, out).init(), status::misused);
    c.connect();
    EXPECT_EQ(w.post(), status::misused);
    EXPECT_NE(w.pending().find("post() without init()"), std::string::npos) << w.pending();
    EXPECT_EQ(w.init(), status::misused) << "sticky";
    ASSERT_EQ(r.init(), status::ok);
    EXPECT_EQ(r.init(), status::misused);
}

/// Misuse of insert() and extract() changes no memory, and is reported by the next calls.
inline void expect_misuse_of_own_buffers_is_told(const job& j) {
    const std::vector<int> three(3, 7);
    const auto told_after = [&](const std::function<void(buffered_send_window<int>&)>& calls) {
        connection c(j, j.rank());
        buffered_send_window<int> w(c, 4);
        buffered_recv_window<int> r(c, 4);
        c.connect();
        calls(w);
        EXPECT_EQ(w.post(), status::misused);
        EXPECT_EQ(w.wait(), status::misused);
        const std::string text = w.pending();
        return text.substr(text.rfind(": ") + 2);
    };

    EXPECT_EQ(told_after([&](auto& w) { w.insert(three); }), "insert() that is not between init() and post()");
    for (const std::size_t at : {2, 5})
        EXPECT_EQ(told_after([&](auto& w) {
                      ASSERT_EQ(w.init(), status::ok);
                      w.insert(three, at);
                  }),
                  "insert() of elements that the window doesn't have");
    EXPECT_EQ(told_after([&](auto& w) {
                  ASSERT_EQ(w.init(), status::ok);
                  w.insert(three, 0, {0, 0});
              }),
              "a team has 1 member or more, which count from 0");
    connection c(j, j.rank());
    buffered_send_window<int> w(c, 4);
    buffered_recv_window<int> r(c, 4);
    c.connect();
    std::vector<int> in(4);
    r.extract(in, 0, {2, 2});
    EXPECT_EQ(r.init(), status::misused);
    EXPECT_NE(r.pending().find("as member 2 of a team of 2"), std::string::npos) << r.pending();
    const buffered_send_window<int> taken = std::move(w);
    EXPECT_THROW(w.wait_or_throw(), input_error);
    const connection taken_too = std::move(c);
    EXPECT_THROW(c.connect(), input_error);
    EXPECT_THROW(send_window<int>(c, in), input_error);
}

/// An empty vector has no address, but its window is still the user's: a sender does not run ahead of its receiver.
inline void expect_windows_of_nothing_keep_their_steps(const job& j) {
    constexpr int steps = 20;
    if (j.rank() < 2 && j.ranks() >= 2) {
        std::vector<int> nothing;
        connection c(j, 1 - j.rank());
        const auto step = [](auto& w) {
            EXPECT_EQ(w.start(), status::ok);
            EXPECT_EQ(w.wait(), status::ok) << w.pending();
        };
        if (j.rank() == 0) {
            send_window<int> out(c, nothing);
            c.connect();
            for (int k = 0; k < steps; ++k) step(out);
        } else {
            recv_window<int> in(c, std::span(nothing));
            c.connect();
            std::this_thread::sleep_for(std::chrono::milliseconds(50)); // the sender goes as far as it can
            for (int k = 0; k < steps; ++k) step(in);
            EXPECT_EQ(in.count(), 0U);
        }
    }
    j.barrier();
}

/// A peer that closes its end half-way ends the wait: a receiver's for data, and a sender's for the token.
inline void expect_farewell_ends_the_wait(const job& j, std::size_t count = 100) {
    if (j.ranks() >= 2 && j.rank() < 2) {
        words buffer(count, 0, &j.memory());
        connection c(j, 1 - j.rank());
        const auto step = [](auto& w) {
            return w.init() == status::ok && w.post() == status::ok ? w.wait() : w.state();
        };
        if (j.rank() == 0) {
            recv_window<std::uint64_t> in(c, buffer);
            send_window<std::uint64_t> out(c, buffer);
            c.connect();
            EXPECT_EQ(step(in), status::ok);
            EXPECT_EQ(step(in), status::aborted) << in.pending();
            EXPECT_EQ(step(in), status::aborted) << "sticky";
            status s = step(out);
            for (int k = 0; k < 3 && s == status::ok; ++k) s = step(out); // some may go into slots
            EXPECT_EQ(s, status::aborted) << out.pending();
        } else {
            send_window<std::uint64_t> out(c, buffer);
            recv_window<std::uint64_t> in(c, buffer);
            c.connect();
            EXPECT_EQ(step(out), status::ok);
        }
    }
    j.barrier();
}

/// A window that its owner destroys without connecting it: its connected partner's waits end, a receiver's for data and
/// a sender's for the token, by wait() or by test(); a partner that is not connected yet is told by connect().
inline void expect_an_end_that_never_connects_is_noticed(const job& j, std::size_t count = 100) {
    const auto step = [](auto& w, bool by_test) {
        if (w.init() != status::ok || w.post() != status::ok) return w.state();
        while (by_test && !w.test()) {
        }
        return w.wait();
    };
    for (const bool connects : {true, false})
        for (const bool by_test : {false, true}) {
            words buffer(count, 0, &j.memory());
            const bool takes_part = j.ranks() >= 2 && j.rank() < 2;
            std::optional<connection> c;
            std::optional<recv_window<std::uint64_t>> in;
            std::optional<send_window<std::uint64_t>> out;
            if (takes_part) {
                c.emplace(j, 1 - j.rank());
                in.emplace(*c, buffer);
                out.emplace(*c, buffer);
            }
            if (j.rank() == 0 && takes_part && connects) c->connect();
            j.barrier();
            if (j.rank() == 1) {
                in.reset();
                out.reset();
            }
            j.barrier();
            if (j.rank() != 0 || !takes_part) continue;
            if (!connects) {
                std::this_thread::sleep_for(std::chrono::milliseconds(200)); // letters are slower than the barrier
                EXPECT_THROW(c->connect(), input_error);
                continue;
            }
            EXPECT_EQ(step(*in, by_test), status::aborted) << in->pending();
            status s = step(*out, by_test);
            for (int k = 0; k < 20 && s == status::ok; ++k) s = step(*out, by_test); // some may go into slots
            EXPECT_EQ(s, status::aborted) << out->pending();
        }
    j.barrier();
}

} // namespace halocline_test
