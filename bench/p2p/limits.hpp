// SPDX-License-Identifier: Apache-2.0
// What no library can avoid, in memory that two ranks map; written for this bench alone.
//   slot     a flag and the payload, written by the sender into two slots in turn, read in place
//   copy     one memcpy by the receiver out of the sender's buffer, with a flag before and a flag after
//   nomatch  our messages' protocols between slabs, cell by cell, by the same copy loop (comm/detail/shared_copy.hpp),
//            without matching: the difference is the cost of matching. It never bypasses the cache or copies streams
//            first, so it can't be compared where our messages do (p2p/message_ways.hpp).
#pragma once

#include "support/flag_probe.hpp"
#include "support/rounds.hpp"
#include "support/shared_pages.hpp"

#include <halocline/comm/detail/prefetch.hpp>
#include <halocline/comm/detail/shared_copy.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <type_traits>

namespace halocline::bench::p2p {

/// What the two ranks of a pair share: flags, slots, buffers.
class pair_memory {
  public:
    static constexpr std::size_t largest = 8 << 20;
    static constexpr std::uint64_t cells = 64, slots = 4, lines = 16;
    struct alignas(128) line {
        std::atomic<std::uint64_t> value{0};
        std::uint64_t word = 0;
    };
    struct alignas(128) cell {
        std::atomic<std::uint64_t> number{0};
        std::uint64_t label = 0;
        std::uint32_t bytes = 0, taken = 0; ///< taken: by this cell's sender, of the messages sent to it
        std::byte payload[40];
    };
    /// A message that doesn't fit into a cell: every other line, starting from the last.
    struct slot {
        cell first;
        alignas(128) std::byte room[128 * lines];
        [[nodiscard]] static std::size_t place(std::size_t at) { return 128 * (lines - 1 - at / 64); }
    };

    explicit pair_memory(const comm::job& j) : area_(j, 1 << 16 | 4 * (largest + 4096)), job_(j), spins_(spins_of(j)) {}
    [[nodiscard]] int spins() const { return spins_; }
    [[nodiscard]] const comm::job& job() const { return job_; }
    [[nodiscard]] line& flag(int rank, int i) const { return reinterpret_cast<line*>(area_.of(rank))[i]; }
    [[nodiscard]] cell& ring(int rank, std::uint64_t i) const {
        return reinterpret_cast<cell*>(area_.of(rank) + 4096)[i * 27 % cells];
    }
    [[nodiscard]] slot& slot_of(int rank, std::uint64_t i) const {
        return reinterpret_cast<slot*>(area_.of(rank) + (1 << 14))[i % slots];
    }
    /// 0, 1: slots; 2: what is sent, 3: what arrives. At different offsets in their pages.
    [[nodiscard]] std::byte* block(int rank, std::uint64_t i) const {
        return area_.of(rank) + (1 << 16) + i * (largest + 1024);
    }

  private:
    shared_pages area_;
    comm::job job_;
    int spins_;
};

class limit_endpoint {
  public:
    explicit limit_endpoint(const pair_memory& m) : m_(m), rank_(m.job().rank()), peer_(1 - rank_) {
        for (int i = 0; i < 8; ++i) m.flag(rank_, i).value.store(0);
        for (std::uint64_t i = 0; i < pair_memory::cells; ++i) m.ring(rank_, i).number.store(0);
        for (std::uint64_t i = 0; i < pair_memory::slots; ++i) new (&m.slot_of(rank_, i)) pair_memory::slot;
        m.job().barrier();
    }
    [[nodiscard]] int rank() const { return rank_; }
    std::byte* out(std::size_t) { return m_.block(rank_, 2); }
    std::byte* in(std::size_t) { return m_.block(rank_, 3); }
    std::vector<double> slowest(const std::vector<double>& mine) { return bench::slowest(m_.job(), mine); }

  protected:
    void await_flag(const std::atomic<std::uint64_t>& f, std::uint64_t epoch) const { await(f, epoch, m_.spins()); }
    const pair_memory& m_;
    int rank_, peer_;
};

class slot_endpoint : public limit_endpoint {
  public:
    using limit_endpoint::limit_endpoint;
    void send(const std::byte* p, std::size_t n) {
        ++sent_;
        pair_memory::line& f = m_.flag(peer_, static_cast<int>(sent_ & 1));
        std::memcpy(m_.block(peer_, sent_ & 1), p, n);
        f.word = n;
        f.value.store(sent_, std::memory_order_release);
    }
    const std::byte* recv(std::byte*, std::size_t) {
        ++received_;
        await_flag(m_.flag(rank_, static_cast<int>(received_ & 1)).value, received_);
        return m_.block(rank_, received_ & 1);
    }
    const std::byte* exchange(const std::byte* out, std::byte* in, std::size_t n) {
        send(out, n);
        return recv(in, n);
    }

  private:
    std::uint64_t sent_ = 0, received_ = 0;
};

class copy_endpoint : public limit_endpoint {
  public:
    using limit_endpoint::limit_endpoint;
    void send(const std::byte* p, std::size_t) {
        publish(p);
        await_copied();
    }
    const std::byte* recv(std::byte* p, std::size_t n) {
        ++received_;
        await_flag(m_.flag(rank_, 0).value, received_);
        std::memcpy(p, m_.block(peer_, 2) + m_.flag(rank_, 0).word, n);
        m_.flag(peer_, 1).value.store(received_, std::memory_order_release);
        return p;
    }
    const std::byte* exchange(const std::byte* out, std::byte* in, std::size_t n) {
        publish(out);
        recv(in, n);
        await_copied();
        return in;
    }
    void token(int from) {
        if (rank_ != from) {
            recv(m_.block(rank_, 3), 0);
            return;
        }
        publish(m_.block(rank_, 2));
        await_copied();
    }

  private:
    void publish(const std::byte* p) {
        m_.flag(peer_, 0).word = static_cast<std::uint64_t>(p - m_.block(rank_, 2));
        m_.flag(peer_, 0).value.store(++sent_, std::memory_order_release);
    }
    void await_copied() { await_flag(m_.flag(rank_, 1).value, sent_); }
    std::uint64_t sent_ = 0, received_ = 0;
};

/// A limit whose thresholds are those of our messages.
class nomatch_endpoint : public limit_endpoint {
  public:
    nomatch_endpoint(const pair_memory& m, std::size_t immediate, std::size_t synergistic)
        : limit_endpoint(m), immediate_(immediate), synergistic_(synergistic) {}
    void send(const std::byte* p, std::size_t n) {
        start_send(p, n);
        finish_send(p, n);
    }
    const std::byte* recv(std::byte* p, std::size_t n) {
        pair_memory::cell& c = cell_of(rank_, received_++, n);
        await_flag(c.number, received_);
        if (n <= immediate_) {
            if (in_slot(n))
                read_slot(p, m_.slot_of(rank_, received_ - 1), n);
            else
                std::memcpy(p, c.payload, n);
            credit_ += c.taken - static_cast<std::uint32_t>(credit_);
            if (received_ % std::max<std::uint64_t>(1, room(n) / 4) == 0)
                m_.flag(peer_, 1).value.store(received_, std::memory_order_release);
            return p;
        }
        std::uint64_t offset = 0;
        std::memcpy(&offset, c.payload, sizeof offset);
        const std::byte* from = m_.block(peer_, 2) + offset;
        if (n < synergistic_ || sending_) { // like ours: a peer to which this rank sends, too, is busy copying
            std::memcpy(p, from, n);
        } else { // the record of the sender: 2 state, 3 next piece, 4 pieces copied by the sender
            m_.flag(peer_, 3).value.store(0, std::memory_order_relaxed);
            m_.flag(peer_, 2).word = static_cast<std::uint64_t>(p - m_.block(rank_, 3));
            m_.flag(peer_, 2).value.store(2 * received_, std::memory_order_release);
            const std::uint64_t mine = pieces(m_.flag(peer_, 3).value, p, from, n);
            await_flag(m_.flag(peer_, 4).value, comm::pieces_of(n) - mine);
        }
        m_.flag(peer_, 2).value.store(2 * received_ + 1, std::memory_order_release);
        return p;
    }
    const std::byte* exchange(const std::byte* out, std::byte* in, std::size_t n) {
        start_send(out, n);
        recv(in, n);
        finish_send(out, n);
        return in;
    }
    void token(int from) {
        if (rank_ == from)
            send(nullptr, 0);
        else
            recv(nullptr, 0);
    }

  private:
    [[nodiscard]] bool in_slot(std::size_t n) const {
        return n > sizeof(pair_memory::cell::payload) && n <= immediate_;
    }
    /// Number of messages that may be under way.
    [[nodiscard]] std::uint64_t room(std::size_t n) const {
        return in_slot(n) ? pair_memory::slots : pair_memory::cells;
    }
    [[nodiscard]] pair_memory::cell& cell_of(int receiver, std::uint64_t i, std::size_t n) const {
        return in_slot(n) ? m_.slot_of(receiver, i).first : m_.ring(receiver, i);
    }
    static void write_slot(pair_memory::slot& s, const std::byte* p, std::size_t n) {
        for_each_line(n, [&](std::size_t at, auto bytes) { std::memcpy(s.room + s.place(at), p + at, bytes); });
    }
    static void read_slot(std::byte* p, const pair_memory::slot& s, std::size_t n) {
        for (std::size_t at = 0; at < n; at += 64) __builtin_prefetch(s.room + s.place(at));
        for_each_line(n, [&](std::size_t at, auto bytes) { std::memcpy(p + at, s.room + s.place(at), bytes); });
    }
    template <class Copy>
    static void for_each_line(std::size_t n, Copy&& copy) {
        std::size_t at = 0;
        for (; at + 64 <= n; at += 64) copy(at, std::integral_constant<std::size_t, 64>());
        if (at < n) copy(at, n - at);
    }
    static std::uint64_t pieces(std::atomic<std::uint64_t>& next, std::byte* to, const std::byte* from, std::size_t n) {
        return comm::copy_pieces(
            next, n, [&](std::uint64_t start, std::uint64_t bytes) { std::memcpy(to + start, from + start, bytes); });
    }
    void start_send(const std::byte* p, std::size_t n) {
        const std::uint64_t most = room(n);
        if (sent_ - credit_ >= most) {
            await_flag(m_.flag(rank_, 1).value, sent_ - most + 1);
            credit_ = m_.flag(rank_, 1).value.load(std::memory_order_acquire);
        }
        pair_memory::cell& c = cell_of(peer_, sent_, n);
        c.bytes = static_cast<std::uint32_t>(n);
        c.taken = static_cast<std::uint32_t>(received_);
        if (n <= immediate_) {
            if (in_slot(n))
                write_slot(m_.slot_of(peer_, sent_), p, n);
            else if (n > 0)
                std::memcpy(c.payload, p, n);
        } else {
            const auto offset = static_cast<std::uint64_t>(p - m_.block(rank_, 2));
            std::memcpy(c.payload, &offset, sizeof offset);
            m_.flag(rank_, 4).value.store(0, std::memory_order_relaxed);
            sending_ = true;
        }
        c.number.store(++sent_, std::memory_order_release);
        if (!in_slot(n) || n <= 64) return;
        const pair_memory::slot& next = m_.slot_of(peer_, sent_);
        for (std::size_t at = 0; at < n; at += 64) comm::prefetch_for_writing(next.room + next.place(at));
    }
    void finish_send(const std::byte* p, std::size_t n) {
        if (n <= immediate_) return;
        pair_memory::line& state = m_.flag(rank_, 2);
        await_flag(state.value, 2 * sent_);
        if (n >= synergistic_ && state.value.load(std::memory_order_acquire) == 2 * sent_)
            m_.flag(rank_, 4).value.store(pieces(m_.flag(rank_, 3).value, m_.block(peer_, 3) + state.word, p, n),
                                          std::memory_order_release);
        await_flag(state.value, 2 * sent_ + 1);
        sending_ = false;
        credit_ = sent_; // everything sent before has been taken, too
    }
    std::size_t immediate_, synergistic_;
    bool sending_ = false; ///< is a message under way that the peer has to copy?
    std::uint64_t sent_ = 0, received_ = 0, credit_ = 0;
};

} // namespace halocline::bench::p2p
