// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/clock.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>

namespace {

using namespace halocline::comm;

/// As asked by a static object that is made before those of the library, such as a job.
const double asked_early = seconds_per_tick();

TEST(Clock, TicksAreSecondsForStaticObjectsToo) {
    using steady = std::chrono::steady_clock;
    const steady::time_point begin = steady::now();
    const std::uint64_t first = ticks();

    std::this_thread::sleep_for(std::chrono::milliseconds(300));

    const std::uint64_t last = ticks();
    const double passed = std::chrono::duration<double>(steady::now() - begin).count();
    EXPECT_NEAR(static_cast<double>(last - first) * asked_early, passed, 0.1 * passed);
}

} // namespace
