// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/costs.hpp>

#include "job_core.hpp"
#include "wire.hpp"

#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/clock.hpp>
#include <halocline/comm/stream_bytes.hpp>

#include <algorithm>
#include <cstring>

namespace halocline::comm {
namespace {

/// Least time of a few attempts: what else runs on the machine only adds.
template <class Work>
double least_seconds(int attempts, Work&& work) {
    std::uint64_t least = ~std::uint64_t{0};
    for (int i = 0; i < attempts; ++i) {
        const std::uint64_t before = ticks();
        work();
        least = std::min(least, ticks() - before);
    }
    return seconds(least);
}

/// An exchange of `messages` empty messages between the ranks 2i and 2i + 1.
double exchange_seconds(const job& j, std::uint32_t messages) {
    const int peer = j.rank() ^ 1;
    std::vector<channel_request> requests;
    for (std::uint32_t m = 0; peer < j.ranks() && m < messages; ++m) requests.push_back({peer, m, m, 8, 8, "probe"});
    channel_set set(j, requests, {"costs", "", {}});
    std::uint64_t epoch = 0;
    return least_seconds(8,
                         [&] {
                             for (int i = 0; i < 8; ++i) {
                                 ++epoch;
                                 set.for_each([&](auto& c) {
                                     std::memset(c.target(epoch), 0, 8);
                                     c.send(epoch, 0);
                                 });
                                 if (const status s = set.wait(epoch); s != status::ok) j.fail(s, set.pending(epoch));
                             }
                         }) /
           8;
}

/// Messages between the ranks 2i and 2i + 1, written by cached stores and by streaming ones, read at the other end.
class write_probe {
  public:
    /// Collective.
    explicit write_probe(const job& j) : job_(j), source_(most) {
        const int peer = j.rank() ^ 1;
        std::vector<channel_request> requests;
        if (peer < j.ranks() && j.members()[static_cast<std::size_t>(peer)].transport == shm_channel::transport)
            requests.push_back({peer, 0, 0, most, most, "probe"});
        set_ = channel_set(j, requests, {"write costs", "", {}});
    }
    /// 0 on a rank without a partner.
    [[nodiscard]] write_cost operator()(bool streaming) {
        if (set_.size() == 0) return {};
        constexpr std::size_t least = 1024;
        const double small = seconds_of(least, streaming), large = seconds_of(most, streaming);
        write_cost cost;
        cost.line_seconds = std::max(0.0, large - small) / static_cast<double>((most - least) / line);
        cost.message_seconds = std::max(0.0, small - cost.line_seconds * static_cast<double>(least / line));
        return cost;
    }

  private:
    static constexpr std::size_t line = 64, most = 16 * 1024;
    double seconds_of(std::size_t bytes, bool streaming) {
        constexpr int steps = 4;
        return least_seconds(6,
                             [&] {
                                 for (int i = 0; i < steps; ++i) step(bytes, streaming);
                             }) /
               steps;
    }
    /// The source changes, travels, and is read.
    void step(std::size_t bytes, bool streaming) {
        ++epoch_;
        for (std::size_t i = 0; i < bytes; i += line) source_[i] = static_cast<std::byte>(epoch_);
        set_.for_each([&](auto& c) {
            std::byte* const target = c.target(epoch_);
            if (streaming) {
                stream_bytes(target, source_.data(), bytes);
                finish_streams();
            } else {
                for (std::size_t i = 0; i < bytes; i += line)
                    *const_cast<volatile std::byte*>(target + i) = std::byte{0};
                std::memcpy(target, source_.data(), bytes);
            }
            c.send(epoch_, 0);
        });
        if (const status s = set_.wait(epoch_); s != status::ok) job_.fail(s, set_.pending(epoch_));
        set_.for_each([&](auto& c) {
            const std::byte* const message = c.received(epoch_);
            for (std::size_t i = 0; i < bytes; i += line) (void)*const_cast<const volatile std::byte*>(message + i);
        });
    }

    job job_;
    std::vector<std::byte> source_;
    channel_set set_;
    std::uint64_t epoch_ = 0;
};

costs measure(const job& j) {
    constexpr std::size_t run = 96, stride = 16 * run, runs = 256;
    std::vector<char> from(runs * stride), to(runs * stride);
    const double whole = least_seconds(4, [&] {
        from[0] = static_cast<char>(from[0] + 1);
        std::memcpy(to.data(), from.data(), to.size());
    });
    const double strided = least_seconds(4, [&] {
        for (std::size_t i = 0; i < runs; ++i) std::memcpy(to.data() + i * run, from.data() + i * stride, run);
    });
    constexpr std::uint32_t many = 8;
    costs c;
    c.copy_seconds_per_byte = whole / static_cast<double>(to.size());
    c.run_seconds = std::max(0.0, strided / runs - run * c.copy_seconds_per_byte);
    c.flag_seconds = exchange_seconds(j, 1);
    c.message_seconds = std::max(0.0, (exchange_seconds(j, many) - c.flag_seconds) / (many - 1));
    write_probe write(j);
    if (j.core().spin_polls >= 1000) { // else ranks share cores: what is measured then is the scheduler
        c.cached = write(false);
        c.streamed = write(true);
    }
    return c;
}

} // namespace

const costs& measured_costs(const job& j) {
    job_core& core = j.core();
    if (core.measured) return *core.measured;
    const costs mine = measure(j);
    std::vector<costs> all;
    for (const std::string& text : j.gather(wire_writer().number(mine).take()))
        all.push_back(wire_reader(text).number<costs>());
    // Of those who know it: a rank without a partner has measured nothing.
    const auto median = [&](auto&& of) {
        std::vector<double> values;
        for (const costs& c : all)
            if (const double value = of(c); value > 0) values.push_back(value);
        if (values.empty()) return 0.0;
        const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
        std::nth_element(values.begin(), middle, values.end());
        return *middle;
    };
    const auto median_write = [&](write_cost costs::*how) {
        return write_cost{median([&](const costs& c) { return (c.*how).message_seconds; }),
                          median([&](const costs& c) { return (c.*how).line_seconds; })};
    };
    core.measured = {.flag_seconds = median([](const costs& c) { return c.flag_seconds; }),
                     .message_seconds = median([](const costs& c) { return c.message_seconds; }),
                     .copy_seconds_per_byte = median([](const costs& c) { return c.copy_seconds_per_byte; }),
                     .run_seconds = median([](const costs& c) { return c.run_seconds; }),
                     .cached = median_write(&costs::cached),
                     .streamed = median_write(&costs::streamed)};
    return *core.measured;
}

} // namespace halocline::comm
