// SPDX-License-Identifier: Apache-2.0
// What bench_sum and its MPI peers time: sums over all ranks, one after the other, of values that change each time.
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace halocline::bench {

/// What bench_sum asks of an MPI program.
struct sum_order {
    std::size_t values = 0; ///< doubles in a sum
    double seconds = 0;
    std::string call = "allreduce"; ///< a mode of --peer: also "allreduce-init"

    /// "values seconds call"
    [[nodiscard]] std::string text() const {
        std::ostringstream out;
        out << values << ' ' << seconds << ' ' << call;
        return out.str();
    }
    /// Nothing if the line is no such text; without a call it is the first one.
    [[nodiscard]] static std::optional<sum_order> parse(const std::string& line) {
        sum_order o;
        std::istringstream words(line);
        if (!(words >> o.values >> o.seconds) || o.values == 0) return {};
        words >> o.call;
        return o;
    }
};

/// Microseconds per sum of 20 batches, on the slowest rank: `count` doubles each, for about `seconds` in all.
/// sum(values) replaces values, always the same vector, by their sums over ranks; slowest(times) returns the greatest
/// of each.
/// Err: error if a sum is wrong.
template <class Sum, class Slowest>
std::vector<double> time_sums(int rank, int ranks, std::size_t count, double seconds, Sum&& sum, Slowest slowest) {
    constexpr int batches = 20, first_sums = 20;
    const double of_ranks = 0.5 * ranks * (ranks + 1);
    std::vector<double> values(count);
    std::size_t wrong = 0;
    double n = 0;
    const auto seconds_of = [&](int sums) {
        const std::uint64_t before = comm::ticks();
        for (int s = 0; s < sums; ++s) {
            ++n;
            for (std::size_t i = 0; i < count; ++i) values[i] = (rank + 1) * (n + static_cast<double>(i));
            sum(values);
            const double last = n + static_cast<double>(count - 1);
            wrong += values.front() != of_ranks * n || values.back() != of_ranks * last;
        }
        return comm::seconds(comm::ticks() - before);
    };
    seconds_of(first_sums); // the first ones make connections
    const double each = slowest({seconds_of(first_sums) / first_sums})[0];
    const int sums = static_cast<int>(std::clamp(seconds / batches / each, 1.0, 1e7));
    std::vector<double> us;
    for (int b = 0; b < batches; ++b) us.push_back(1e6 * seconds_of(sums) / sums);
    if (wrong > 0) throw error(std::to_string(wrong) + " sums were wrong on rank " + std::to_string(rank));
    return slowest(us);
}

} // namespace halocline::bench
