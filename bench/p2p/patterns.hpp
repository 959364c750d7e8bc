// SPDX-License-Identifier: Apache-2.0
// What is measured between two ranks, whatever they communicate through: Presta's laten and com (one way, both ways)
// and Netgauge's overhead of isend and irecv. The originals' flaws are avoided: sources change with every message,
// every message is read, the last one is verified, everything is warm, and the slowest rank counts.
//
// Two measures each: "bare" ("alone" in tables), from the call until the message has been read, with sources changed
// before; "step", with the change of the source (docs/decisions/0009-benches-read-the-ghosts.md).
#pragma once

#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace halocline::bench::p2p {

struct order {
    std::string pattern; ///< "latency", "one-way", "both-ways", "overhead"
    std::size_t bytes = 8;
    double seconds = 0.1;

    /// "pattern bytes seconds", as an MPI program is asked for it.
    [[nodiscard]] std::string text() const {
        std::ostringstream out;
        out << pattern << ' ' << bytes << ' ' << seconds;
        return out.str();
    }
    /// Nothing if the line is no such text, or its messages are not made of words of 8 bytes, which are verified.
    [[nodiscard]] static std::optional<order> parse(const std::string& line) {
        order o;
        std::istringstream words(line);
        if (!(words >> o.pattern >> o.bytes >> o.seconds) || o.bytes < 8 || o.bytes % 8 != 0) return {};
        return o;
    }
};
/// What is measured of each order: bare and step; for "overhead": isend and irecv.
inline constexpr std::size_t measure_count = 2;

/// Microseconds of each batch: bare and step; for "overhead": in isend, in irecv.
using batches = std::vector<std::vector<double>>;

inline constexpr int batch_count = 16;
/// For "one-way": messages sent before the first is acknowledged.
inline std::size_t window_of(std::size_t bytes) { return std::clamp<std::size_t>((1 << 20) / bytes, 1, 64); }

/// A message changes in one word per cache line with each step.
class payload {
  public:
    static std::uint64_t word(int rank, std::size_t w, std::uint64_t step) {
        const std::uint64_t constant = (w << 8) + static_cast<std::uint64_t>(rank);
        return w % 8 == 0 ? constant + (step << 40) : constant;
    }
    static void fill(std::byte* to, std::size_t bytes, int rank, std::uint64_t step) {
        for (std::size_t w = 0; w < bytes / 8; ++w) put(to, w, word(rank, w, step));
    }
    static void dirty(std::byte* to, std::size_t bytes, int rank, std::uint64_t step) {
        for (std::size_t w = 0; w < bytes / 8; w += 8) put(to, w, word(rank, w, step));
    }
    static std::uint64_t read(const std::byte* from, std::size_t bytes) {
        std::uint64_t sum = 0;
        for (std::size_t at = 0; at < bytes; at += 64) {
            std::uint64_t value;
            std::memcpy(&value, from + at, 8);
            sum += value;
        }
        return sum;
    }
    static bool right(const std::byte* from, std::size_t bytes, int rank, std::uint64_t step) {
        for (std::size_t w = 0; w < bytes / 8; ++w) {
            const std::uint64_t expected = word(rank, w, step);
            if (std::memcmp(from + 8 * w, &expected, 8) != 0) return false;
        }
        return true;
    }

  private:
    static void put(std::byte* to, std::size_t w, std::uint64_t value) { std::memcpy(to + 8 * w, &value, 8); }
};

/// Runs one order on both ranks of a pair. An endpoint has rank(), out(bytes) and in(bytes) memory, slowest(numbers),
/// send(p, n), recv(p, n), exchange(out, in, n) (the last two return the message's address), and for "overhead" isend,
/// irecv and test. Ends the program on a wrong payload.
template <class Endpoint>
class measurement {
  public:
    measurement(Endpoint& e, const order& o) : e_(e), order_(o), n_(o.bytes), rank_(e.rank()) {
        window_ = o.pattern == "one-way" ? window_of(n_) : 1;
        out_ = e.out(window_ * n_);
        in_ = e.in(window_ * n_);
        for (std::size_t i = 0; i < window_; ++i) payload::fill(out_ + i * n_, n_, rank_, 0);
        std::memset(in_, 0, window_ * n_);
    }
    batches run() {
        for (int i = 0; i < 4; ++i) step(); // the first messages make connections
        bare_ = other_ = 0;
        const std::uint64_t begin = comm::ticks();
        for (int i = 0; i < 4; ++i) step();
        const double each = e_.slowest({comm::seconds(comm::ticks() - begin) / 4})[0];
        const int steps = std::clamp(static_cast<int>(order_.seconds / batch_count / each), 1, 10'000);
        batches us(measure_count);
        for (int b = 0; b < batch_count; ++b) {
            bare_ = other_ = 0;
            const std::uint64_t start = comm::ticks();
            for (int i = 0; i < steps; ++i) step();
            const std::uint64_t whole = order_.pattern == "overhead" ? other_ : comm::ticks() - start;
            const double per = 1e6 / (steps * messages_per_step());
            us[0].push_back(per * comm::seconds(bare_));
            us[1].push_back(per * comm::seconds(whole));
        }
        verify();
        return {e_.slowest(us[0]), e_.slowest(us[1])};
    }

  private:
    [[nodiscard]] double messages_per_step() const {
        if (order_.pattern == "latency") return 2;
        return order_.pattern == "one-way" ? static_cast<double>(window_) : 1;
    }
    void step() {
        ++step_;
        for (std::size_t i = 0; i < window_; ++i) payload::dirty(out_ + i * n_, n_, rank_, step_);
        if (order_.pattern == "latency")
            latency();
        else if (order_.pattern == "one-way")
            one_way();
        else if (order_.pattern == "both-ways")
            both_ways();
        else if constexpr (requires { typename Endpoint::request; })
            overhead();
    }
    void consume(const std::byte* at) {
        last_ = at;
        sink_ = sink_ + payload::read(at, n_);
    }
    void latency() {
        const std::uint64_t begin = comm::ticks();
        if (rank_ == 0) e_.send(out_, n_);
        consume(e_.recv(in_, n_)); // before it is answered, so that the transfer of its lines is included
        if (rank_ == 1)
            e_.send(out_, n_);
        else
            bare_ += comm::ticks() - begin; // rank 1 begins when it is ready
    }
    void both_ways() {
        const std::uint64_t begin = comm::ticks();
        consume(e_.exchange(out_, in_, n_));
        bare_ += comm::ticks() - begin;
    }
    /// A window of messages from rank 0, acknowledged together.
    void one_way() {
        if constexpr (requires { e_.token(0); }) {
            e_.token(1);
            const std::uint64_t begin = comm::ticks();
            for (std::size_t i = 0; i < window_; ++i) {
                if (rank_ == 0)
                    e_.send(out_ + i * n_, n_);
                else
                    consume(e_.recv(in_ + i * n_, n_));
            }
            e_.token(1);
            if (rank_ == 0) bare_ += comm::ticks() - begin;
        }
    }
    /// Netgauge's nbov: the time spent in the calls that start.
    void overhead() {
        typename Endpoint::request r;
        const auto sending = [&] {
            const std::uint64_t begin = comm::ticks();
            e_.isend(out_, n_, r);
            bare_ += comm::ticks() - begin;
            while (!e_.test(r)) {
            }
        };
        const auto receiving = [&] {
            const std::uint64_t begin = comm::ticks();
            e_.irecv(in_, n_, r);
            other_ += comm::ticks() - begin;
            while (!e_.test(r)) {
            }
            consume(in_);
        };
        if (rank_ == 0) sending();
        receiving();
        if (rank_ == 1) sending();
    }
    void verify() const {
        const bool receives = order_.pattern != "one-way" || rank_ == 1;
        if (!receives || payload::right(last_, n_, 1 - rank_, step_)) return;
        std::fprintf(stderr, "bench_p2p: %s of %zu bytes: wrong payload on rank %d\n", order_.pattern.c_str(), n_,
                     rank_);
        std::abort();
    }

    Endpoint& e_;
    const order& order_;
    std::size_t n_, window_ = 1;
    int rank_;
    std::byte *out_ = nullptr, *in_ = nullptr;
    const std::byte* last_ = nullptr;
    std::uint64_t step_ = 0, bare_ = 0, other_ = 0;
    volatile std::uint64_t sink_ = 0;
};

} // namespace halocline::bench::p2p
