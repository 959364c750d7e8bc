// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/costs.hpp>

#include "job_core.hpp"
#include "wire.hpp"

#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <array>
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
    return c;
}

} // namespace

const costs& measured_costs(const job& j) {
    job_core& core = j.core();
    if (core.measured) return *core.measured;
    const costs mine = measure(j);
    const std::array numbers{mine.flag_seconds, mine.message_seconds, mine.copy_seconds_per_byte, mine.run_seconds};
    std::array<std::vector<double>, 4> of_ranks;
    for (const std::string& text : j.gather(wire_writer().number(numbers).take())) {
        const auto theirs = wire_reader(text).number<std::array<double, 4>>();
        for (std::size_t i = 0; i < 4; ++i) of_ranks[i].push_back(theirs[i]);
    }
    const auto median = [](std::vector<double>& values) {
        std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
        return values[values.size() / 2];
    };
    core.measured = {median(of_ranks[0]), median(of_ranks[1]), median(of_ranks[2]), median(of_ranks[3])};
    return *core.measured;
}

} // namespace halocline::comm
