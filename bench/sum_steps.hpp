// SPDX-License-Identifier: Apache-2.0
// What bench_sum and its MPI peers time: sums over all ranks, one after the other, of values that change each time.
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/comm/clock.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace halocline::bench {

/// Microseconds per sum of several batches, of the slowest rank: so many doubles each, for about so many seconds.
/// sum(values) makes values their sums over ranks; slowest(times) gives the greatest of each.
/// Err: error if a sum is wrong.
template <class Sum, class Slowest>
std::vector<double> time_sums(int rank, int ranks, std::size_t count, double seconds, Sum sum, Slowest slowest) {
    constexpr int sums_in_batch = 20;
    const double of_ranks = 0.5 * ranks * (ranks + 1);
    std::vector<double> values(count), us, more{1};
    std::size_t wrong = 0;
    double n = 0;
    for (const std::uint64_t begin = comm::ticks(); more[0] > 0;) {
        const std::uint64_t before = comm::ticks();
        for (int s = 0; s < sums_in_batch; ++s) {
            ++n;
            for (std::size_t i = 0; i < count; ++i) values[i] = (rank + 1) * (n + static_cast<double>(i));
            sum(values);
            const double last = n + static_cast<double>(count - 1);
            wrong += values.front() != of_ranks * n || values.back() != of_ranks * last;
        }
        const std::uint64_t after = comm::ticks();
        us.push_back(1e6 * comm::seconds(after - before) / sums_in_batch);
        more[0] = rank == 0 && comm::seconds(after - begin) < seconds ? 1 : 0;
        sum(more);
    }
    if (wrong > 0) throw error(std::to_string(wrong) + " sums were wrong on rank " + std::to_string(rank));
    return slowest(us);
}

} // namespace halocline::bench
