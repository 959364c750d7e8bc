// SPDX-License-Identifier: Apache-2.0
// Windows between two ranks in every shape that tests need: complete steps, and their contents.
#pragma once

#include <halocline/comm/slab.hpp>
#include <halocline/comm/window.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <list>
#include <memory_resource>
#include <string>
#include <vector>

namespace halocline_test {

using namespace halocline;
using namespace halocline::comm;

/// The contents of one message: no other step, sender or direction has the same.
inline std::uint64_t word(int sender, int direction, std::uint64_t step, std::size_t place) {
    return ((step * 1'000'003u + place) * 64 + static_cast<std::uint64_t>(sender)) * 4 +
           static_cast<unsigned>(direction);
}

/// Number of elements that the sender posts in a step: all of them two times out of three.
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
    /// Number of words of the step that are not what the peer sent, plus 1 if their number is wrong.
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
    std::string describe_sender() {
        return buffered_send_.empty() ? send_[0].describe() : buffered_send_[0].describe();
    }
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
    // Odd ranks in the opposite order: the order must not matter.
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

} // namespace halocline_test
