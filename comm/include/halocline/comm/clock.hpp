// SPDX-License-Identifier: Apache-2.0
// A cheap clock for the data path: the processor's time stamp counter where there is one, about 10 ns a reading.
// Readings of ranks on one host can be compared; readings of different hosts can't.
#pragma once

#include <chrono>
#include <cstdint>

namespace halocline::comm {

/// Now, in ticks.
inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc(); // __rdtsc() has a header that takes a third of the time of a file with plan.hpp
#else
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                      std::chrono::nanoseconds(1));
#endif
}

/// Seconds per tick, measured once against the steady clock over at least 5 ms.
double seconds_per_tick() noexcept;

/// Length of an interval of ticks.
inline double seconds(std::uint64_t interval) noexcept { return static_cast<double>(interval) * seconds_per_tick(); }

} // namespace halocline::comm
