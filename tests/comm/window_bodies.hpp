// SPDX-License-Identifier: Apache-2.0
// Test bodies for windows that run with ranks as threads and as processes, over every transport.
#pragma once

#include <halocline/comm/slab.hpp>
#include <halocline/comm/window.hpp>
#include <halocline_test/allocation_counter.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <list>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace halocline_test {

using namespace halocline;
using namespace halocline::comm;

/// What one message holds: no other step, sender or direction has it.
inline std::uint64_t word(int sender, int direction, std::uint64_t step, std::size_t place) {
    return ((step * 1'000'003u + place) * 64 + static_cast<std::uint64_t>(sender)) * 4 +
           static_cast<unsigned>(direction);
}

/// Elements that the sender posts in a step: all of them two times out of three.
inline std::size_t part(std::size_t count, int sender, std::uint64_t step) {
    const std::uint64_t h = (step * 2654435761u + static_cast<unsigned>(sender) * 40503u) >> 7;
    return h % 3 != 0 ? count : (h / 3) % (count + 1);
}

using words = std::pmr::vector<std::uint64_t>;

inline std::pmr::memory_resource* home(const job& j, bool in_slab) {
    if (in_slab) return &j.memory();
    return std::pmr::new_delete_resource();
}

/// How one end of a window is made; all combinations work together.
enum class kind { in_slab, elsewhere, buffered };

/// Both directions of one connection, of any kinds, in one shape.
class link {
  public:
    link(const job& j, int to, int direction, std::size_t count, kind send_kind, kind recv_kind)
        : connection_(j, to, {direction == 0 ? "low" : "high", direction, 1 - direction}), me_(j.rank()), peer_(to),
          direction_(direction), out_(count, 0, home(j, send_kind == kind::in_slab)),
          in_(count, 0, home(j, recv_kind == kind::in_slab)) {
        if (send_kind == kind::buffered) {
            buffered_send_.emplace_back(connection_, count);
        } else {
            send_.emplace_back(connection_, out_);
        }
        if (recv_kind == kind::buffered) {
            buffered_recv_.emplace_back(connection_, count);
        } else {
            recv_.emplace_back(connection_, in_);
        }
    }
    void connect() { connection_.connect(); }
    status recv_init() { return buffered_recv_.empty() ? recv_[0].init() : buffered_recv_[0].init(); }
    status recv_post() { return buffered_recv_.empty() ? recv_[0].post() : buffered_recv_[0].post(); }
    status send_init() { return buffered_send_.empty() ? send_[0].init() : buffered_send_[0].init(); }
    status send_post(std::uint64_t step) {
        for (std::size_t i = 0; i < out_.size(); ++i) out_[i] = word(me_, direction_, step, i);
        const std::size_t n = part(out_.size(), me_, step);
        if (buffered_send_.empty()) return send_[0].post(n);
        for (int t = 0; t < 3; ++t) buffered_send_[0].insert({out_.data(), n / 2}, 0, {t, 3});
        buffered_send_[0].insert({out_.data() + n / 2, n - n / 2}, n / 2);
        return buffered_send_[0].post(n);
    }
    status send_wait() {
        const status s = buffered_send_.empty() ? send_[0].wait() : buffered_send_[0].wait();
        std::fill(out_.begin(), out_.end(), ~std::uint64_t{0}); // the buffer is this rank's again
        return s;
    }
    status recv_wait() { return buffered_recv_.empty() ? recv_[0].wait() : buffered_recv_[0].wait(); }
    bool recv_test() { return buffered_recv_.empty() ? recv_[0].test() : buffered_recv_[0].test(); }
    /// Words of the step that are not what the peer sent, and 1 if their number is not.
    std::size_t wrong(std::uint64_t step) {
        const std::size_t n = part(in_.size(), peer_, step);
        std::size_t bad = 0;
        if (!buffered_recv_.empty()) {
            bad += buffered_recv_[0].count() != n;
            for (int t = 0; t < 2; ++t) buffered_recv_[0].extract(in_, 0, {t, 2});
        } else {
            bad += recv_[0].count() != n;
        }
        for (std::size_t i = 0; i < n; ++i) bad += in_[i] != word(peer_, 1 - direction_, step, i);
        return bad;
    }
    std::string pending() { return buffered_recv_.empty() ? recv_[0].pending() : buffered_recv_[0].pending(); }
    std::string describe() { return buffered_recv_.empty() ? recv_[0].describe() : buffered_recv_[0].describe(); }

  private:
    connection connection_;
    int me_, peer_, direction_;
    words out_, in_;
    std::vector<send_window<std::uint64_t>> send_;
    std::vector<recv_window<std::uint64_t>> recv_;
    std::vector<buffered_send_window<std::uint64_t>> buffered_send_;
    std::vector<buffered_recv_window<std::uint64_t>> buffered_recv_;
};

inline std::list<link> ring_of_links(const job& j, std::size_t count, kind s, kind r) {
    std::list<link> links;
    const int next = (j.rank() + 1) % j.ranks(), before = (j.rank() + j.ranks() - 1) % j.ranks();
    links.emplace_back(j, before, 0, count, s, r);
    links.emplace_back(j, next, 1, count, s, r);
    // Odd ranks the other way round: the order must not matter.
    if (j.rank() % 2 == 1) links.reverse();
    for (link& l : links) l.connect();
    return links;
}

inline void step_in_order(std::list<link>& links, std::uint64_t step, std::size_t& wrong) {
    for (link& l : links) ASSERT_EQ(l.recv_init(), status::ok) << l.pending();
    for (link& l : links) ASSERT_EQ(l.send_init(), status::ok) << l.pending();
    for (link& l : links) ASSERT_EQ(l.send_post(step), status::ok) << l.pending();
    for (link& l : links) ASSERT_EQ(l.recv_post(), status::ok) << l.pending();
    for (link& l : links) ASSERT_EQ(l.recv_wait(), status::ok) << l.pending();
    for (link& l : links) wrong += l.wrong(step);
    for (link& l : links) ASSERT_EQ(l.send_wait(), status::ok) << l.pending();
}

/// Every message of every step is what its sender posted in that step, whole or in part.
inline void expect_steps_in_order(const job& j, std::uint64_t steps) {
    constexpr std::array kinds{kind::in_slab, kind::elsewhere, kind::buffered};
    for (const std::size_t count : {1, 2, 3, 8, 64, 1023, 50'000}) {
        for (const kind s : kinds) {
            for (const kind r : kinds) {
                auto links = ring_of_links(j, count, s, r);
                std::size_t wrong = 0;
                const std::uint64_t n = count > 10'000 ? std::min<std::uint64_t>(steps, 8) : steps;
                for (std::uint64_t k = 1; k <= n; ++k) step_in_order(links, k, wrong);
                EXPECT_EQ(wrong, 0u) << links.front().describe();
                j.barrier(); // a farewell of an early rank would come in place of a message
            }
        }
    }
}

/// Nothing comes back but tokens: a sender that never rests, a receiver that dawdles, and the other way round.
inline void expect_one_way_stream(const job& j, std::uint64_t steps) {
    if (j.ranks() < 2) return;
    for (const bool in_slab : {true, false}) {
        for (const int sleeper : {0, 1}) {
            const auto dawdle = [&](std::uint64_t k) {
                if (j.rank() == sleeper && k % 16 == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
            };
            words buffer(500, 0, home(j, in_slab));
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

/// Each rank connects to its peers in an order of its own; a cycle of ranks that wait for one another would hang.
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

/// Several connections of the same two ranks without tags, the own rank among them: first with first, second with
/// second.
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

/// One end may connect long after the other, which neither waits for it nor gives up on it.
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

/// A message whose receive comes late moves on while its sender waits for another: as with MPI_Isend.
inline void expect_posted_messages_move_in_any_wait(const job& j) {
    if (j.ranks() >= 2 && j.rank() < 2) {
        words first(5000, 0, &j.memory()), second(5000, 0, &j.memory());
        connection c(j, 1 - j.rank());
        if (j.rank() == 0) {
            send_window<std::uint64_t> question(c, first);
            recv_window<std::uint64_t> answer(c, second);
            c.connect();
            for (std::uint64_t k = 1; k <= 50; ++k) {
                first[4999] = k;
                ASSERT_EQ(question.init(), status::ok);
                ASSERT_EQ(question.post(), status::ok);
                ASSERT_EQ(answer.init(), status::ok);
                ASSERT_EQ(answer.post(), status::ok);
                ASSERT_EQ(answer.wait(), status::ok) << answer.pending();
                EXPECT_EQ(second[4999], 2 * k);
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
                second[4999] = 2 * first[4999];
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

template <class Work>
std::string refusal(Work work) {
    try {
        work();
    } catch (const input_error& e) {
        return e.what();
    }
    return "accepted";
}

/// Both ends refuse, and each message has both values.
inline void expect_unlike_ends_are_refused(const job& j) {
    if (j.ranks() >= 2 && j.rank() < 2) {
        std::vector<double> doubles(7);
        std::vector<float> floats(8);
        {
            connection c(j, 1 - j.rank(), {"sizes"});
            const std::string text = refusal([&] {
                if (j.rank() == 0) {
                    send_window<double> w(c, doubles);
                    c.connect();
                } else {
                    recv_window<double> w(c, std::span(doubles).first(5));
                    c.connect();
                }
            });
            EXPECT_NE(text.find("7 of float64"), std::string::npos) << text;
            EXPECT_NE(text.find("5 of float64"), std::string::npos) << text;
            EXPECT_NE(text.find("'sizes'"), std::string::npos) << text;
        }
        {
            connection c(j, 1 - j.rank(), {"types"});
            const std::string text = refusal([&] {
                if (j.rank() == 0) {
                    send_window<float> w(c, floats);
                    c.connect();
                } else {
                    buffered_recv_window<double> w(c, 8);
                    c.connect();
                }
            });
            EXPECT_NE(text.find("8 of float32"), std::string::npos) << text;
            EXPECT_NE(text.find("8 of float64"), std::string::npos) << text;
        }
        {
            connection c(j, 1 - j.rank(), {"numbers"});
            const std::string text = refusal([&] {
                send_window<float> w(c, floats); // on both ranks, and nobody receives
                c.connect();
            });
            EXPECT_NE(text.find("1 send and 0 receive windows here, 1 send and 0 receive windows there"),
                      std::string::npos)
                << text;
        }
    }
    EXPECT_NE(refusal([&] { connection(j, j.ranks(), {"nobody"}); }).find("is not a rank"), std::string::npos);
    j.barrier();
}

inline void expect_misuse_is_told(const job& j) {
    std::vector<int> out(4, j.rank()), in(4);
    connection c(j, j.rank());
    send_window<int> w(c, out);
    recv_window<int> r(c, in);
    EXPECT_EQ(send_window<int>(c, out).init(), status::misused);
    c.connect();
    EXPECT_EQ(w.post(), status::misused);
    EXPECT_NE(w.pending().find("post() without init()"), std::string::npos) << w.pending();
    EXPECT_EQ(w.init(), status::misused) << "sticky";
    ASSERT_EQ(r.init(), status::ok);
    EXPECT_EQ(r.init(), status::misused);
}

/// A peer that closes its end in the middle ends the wait, of a receiver for data and of a sender for the token.
inline void expect_farewell_ends_the_wait(const job& j) {
    if (j.ranks() >= 2 && j.rank() < 2) {
        words buffer(100, 0, &j.memory());
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

/// Between init and wait nothing allocates.
inline void expect_no_allocation(const job& j) {
    auto links = ring_of_links(j, 1000, kind::in_slab, kind::in_slab);
    std::size_t wrong = 0;
    for (std::uint64_t k = 1; k <= 3; ++k) step_in_order(links, k, wrong);
    j.barrier();
    const std::uint64_t before = allocations();
    for (std::uint64_t k = 4; k <= 50; ++k) step_in_order(links, k, wrong);
    const std::uint64_t after = allocations();
    EXPECT_EQ(after, before);
    EXPECT_EQ(wrong, 0u);
    j.barrier();
}

} // namespace halocline_test
