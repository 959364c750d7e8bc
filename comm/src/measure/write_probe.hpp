// SPDX-License-Identifier: Apache-2.0
// What messages of plans cost between two ranks, measured with their own channels (costs.cpp).
#pragma once

#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/clock.hpp>
#include <halocline/comm/costs.hpp>
#include <halocline/comm/detail/claim_lines.hpp>
#include <halocline/comm/detail/copy_bytes.hpp>
#include <halocline/comm/detail/stream_bytes.hpp>
#include <halocline/comm/detail/take_line.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace halocline::comm {

/// The least time of a few attempts: other load on the machine only adds.
template <class Work>
[[nodiscard]] double least_seconds(int attempts, Work&& work) {
    std::uint64_t least = ~std::uint64_t{0};
    for (int i = 0; i < attempts; ++i) {
        const std::uint64_t before = ticks();
        work();
        least = std::min(least, ticks() - before);
    }
    return seconds(least);
}

/// How a message is written.
enum class writes {
    claimed,  ///< through the cache, lines claimed, then filled
    filled,   ///< through the cache, lines filled one after the other
    streamed, ///< lines filled by stores that bypass the cache
    in_runs,  ///< through the cache, short runs copied one by one
    pulled,   ///< a word of each line is changed, and the reader copies the lines
    /// A few lines of each page, filled by half, from the other halves of the lines that the peer writes meanwhile.
    scattered
};

/// Messages of at most `bytes` between this rank and its partner, if it has one; the larger ones in shared memory only.
class write_probe {
  public:
    /// Collective.  peer: -1: none.
    write_probe(const job& j, int peer, std::uint32_t messages, std::size_t bytes) : job_(j), source_(bytes) {
        std::vector<channel_request> requests;
        if (peer >= 0) {
            shared_ = j.members()[peer].transport == shm_channel::transport;
            if (!shared_) bytes = least;
            for (std::uint32_t m = 0; m < messages; ++m) requests.push_back({peer, m, m, bytes, bytes, "probe"});
        }
        set_ = channel_set(j, requests, {"costs", "", {}});
    }
    /// Time of an exchange of an empty message; 0 on a rank without a partner.
    [[nodiscard]] double exchange_seconds() {
        return set_.size() == 0 ? 0 : seconds_of([&] { step(0, writes::filled); });
    }
    [[nodiscard]] bool shares_memory() const { return shared_; }
    /// 0 if the partner shares no memory.
    [[nodiscard]] write_cost write_seconds(writes how) {
        if (!shared_) return {};
        // The large size exceeds a first-level cache. Lines that lie there, the writer's or the reader's, take the
        // other core half as long again (Xeon: 13 instead of 8 ns), which is irrelevant to faces that are worth
        // streaming.
        constexpr std::size_t small_bytes = 1024;
        const std::size_t large_bytes = how == writes::scattered ? 4096 : largest;
        const double small = seconds_of([&] { step(small_bytes, how); });
        const double large = seconds_of([&] { step(large_bytes, how); });
        write_cost cost;
        cost.line_seconds = std::max(0.0, large - small) / static_cast<double>((large_bytes - small_bytes) / line);
        cost.message_seconds = std::max(0.0, small - cost.line_seconds * static_cast<double>(small_bytes / line));
        return cost;
    }
    /// Time to get a line back from the partner, who has read it; 0 if the partner shares no memory.
    [[nodiscard]] double take_seconds() {
        if (!shared_) return 0;
        // The median over lines in different places: a prefetcher may already have fetched one half-way, and compared
        // with the least of all readings, those of a plan would look as if they came from far away.
        std::array<std::uint64_t, 9> readings{};
        for (std::size_t i = 0; i < readings.size(); ++i) {
            const std::size_t at = (i + 1) * largest / (readings.size() + 1);
            set_.for_each([&](auto& c) { readings[i] = ticks_to_take(c.target(epoch_ + 1) + at); });
            step(largest, writes::filled);
        }
        const auto middle = readings.begin() + readings.size() / 2;
        std::nth_element(readings.begin(), middle, readings.end());
        return seconds(*middle);
    }
    static constexpr std::size_t largest = std::size_t{64} << 10;

  private:
    static constexpr std::size_t line = 64, least = 8;
    static constexpr std::size_t run = 96;  ///< bytes, of a face that is one site thick: a half-spinor
    static constexpr std::size_t leap = 15; ///< lines, as from row to row of a small box with ghosts
    template <class Step>
    double seconds_of(Step&& step) {
        constexpr int steps = 4;
        return least_seconds(6,
                             [&] {
                                 for (int i = 0; i < steps; ++i) step();
                             }) /
               steps;
    }
    /// The source changes, travels, and is read.
    void step(std::size_t bytes, writes how) {
        ++epoch_;
        for (std::size_t i = 0; i < bytes; i += line) source_[i] = static_cast<std::byte>(epoch_);
        set_.for_each([&](auto& c) {
            std::byte* const target = c.target(epoch_);
            if (how == writes::pulled) {
                for (std::size_t i = 0; i < bytes; i += line) target[i] = static_cast<std::byte>(epoch_);
            } else if (how == writes::streamed) {
                stream_bytes(target, source_.data(), bytes);
                finish_streams();
            } else if (how == writes::in_runs) {
                for (std::size_t i = 0; i < bytes; i += run)
                    std::memcpy(target + i, source_.data() + i, std::min(run, bytes - i));
            } else if (how != writes::scattered) {
                if (how == writes::claimed) claim_lines(target, target + bytes);
                copy_bytes(target, source_.data(), bytes);
            } else {
                const std::byte* const own = c.received(epoch_) + line / 2; // next to what the peer writes meanwhile
                for (std::size_t i = 0; i < bytes; i += line) std::memcpy(target + leap * i, own + leap * i, line / 2);
            }
            c.send(epoch_, 0);
        });
        if (const status s = set_.wait(epoch_); s != status::ok) job_.fail(s, set_.pending(epoch_));
        set_.for_each([&](auto& c) {
            if (how == writes::pulled) return copy_bytes(source_.data(), c.received(epoch_), bytes);
            auto* const message = const_cast<volatile std::byte*>(c.received(epoch_));
            for (std::size_t i = 0; i < bytes; i += line) {
                const std::size_t at = how == writes::scattered ? leap * i : i;
                (void)message[at];
                if (how == writes::scattered) message[at + line - 1] = static_cast<std::byte>(epoch_);
            }
        });
    }

    job job_;
    std::vector<std::byte> source_;
    channel_set set_;
    std::uint64_t epoch_ = 0;
    bool shared_ = false;
};

} // namespace halocline::comm
