// SPDX-License-Identifier: Apache-2.0
// Which random programs a test runs.
#pragma once

#include <halocline/comm/job.hpp>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace halocline_test {

/// `count` seeds, the first half the same in every run, the others new each time, and printed. They differ from 1, 2,
/// ..., count by multiples of 60, so that what remainders of a seed decide is as in these. HALOCLINE_TEST_SEEDS="100 50"
/// names 50 seeds from 100 on instead. `j`: a job of processes, which agree; without one the ranks are threads, and this
/// is called outside of them.
inline std::vector<unsigned> random_seeds(unsigned count, const halocline::comm::job* j = nullptr) {
    std::vector<unsigned> seeds;
    if (const char* const text = std::getenv("HALOCLINE_TEST_SEEDS")) {
        unsigned first = 1;
        std::istringstream(text) >> first >> count;
        for (unsigned i = 0; i < count; ++i) seeds.push_back(first + i);
        return seeds;
    }
    constexpr unsigned period = 60, periods = 10'000'000;
    unsigned drawn = period * (1 + std::random_device()() % periods);
    if (j != nullptr) drawn = static_cast<unsigned>(std::stoul(j->broadcast(std::to_string(drawn))));
    for (unsigned i = 1; i <= count; ++i) seeds.push_back(i <= count / 2 ? i : drawn + i);
    if (j == nullptr || j->rank() == 0)
        std::printf("HALOCLINE_TEST_SEEDS=\"%u %u\"\n", drawn + count / 2 + 1, count - count / 2);
    return seeds;
}

} // namespace halocline_test
