// SPDX-License-Identifier: Apache-2.0
// How long does the call that sends a prepared message take, by rdtsc? Percentiles of many steps; the payload changes
// before each, and the time of reading the clock is subtracted. Shared by bench_window and its MPI peers.
#pragma once

#include "support/json_line.hpp"

#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace halocline::bench {

/// The clock when everything before has executed and nothing after has begun.
inline std::uint64_t fenced_ticks() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_lfence();
    const std::uint64_t t = comm::ticks();
    __builtin_ia32_lfence();
    return t;
#else
    return comm::ticks();
#endif
}

inline constexpr std::size_t window_sizes[] = {8, 256, 4096};

/// Whose line is printed: by one rank.
struct line_head {
    bool print;
    std::string who;
    json_line facts; ///< with which it ends
};

/// step(n, timed) does step n and calls timed(post) where it sends, once.
template <class Step>
void print_post_times(const line_head& head, const char* call, std::size_t bytes, int steps, Step step) {
    std::vector<std::uint64_t> times, empty;
    times.reserve(static_cast<std::size_t>(steps));
    empty.reserve(static_cast<std::size_t>(steps));
    for (int n = 0; n < steps; ++n) {
        step(n, [&](auto&& post) {
            const std::uint64_t a = fenced_ticks();
            const std::uint64_t b = fenced_ticks();
            post();
            const std::uint64_t c = fenced_ticks();
            empty.push_back(b - a);
            times.push_back(c - b);
        });
    }
    const auto warm = [&](std::vector<std::uint64_t>& all) {
        all.erase(all.begin(), all.begin() + steps / 10);
        std::sort(all.begin(), all.end());
    };
    warm(times);
    warm(empty);
    const double clock = static_cast<double>(empty[empty.size() / 2]);
    const auto ns = [&](double part) {
        const auto at = static_cast<std::size_t>(part * static_cast<double>(times.size() - 1));
        return std::max(0.0, static_cast<double>(times[at]) - clock) * comm::seconds_per_tick() * 1e9;
    };
    if (!head.print) return;
    json_line line;
    line.add("bench", "window").add("who", head.who).add("call", call).add("bytes", bytes);
    line.add("p50_ns", ns(0.5)).add("p99_ns", ns(0.99)).add(head.facts);
    std::printf("%s\n", line.text().c_str());
    std::fflush(stdout);
}

} // namespace halocline::bench
