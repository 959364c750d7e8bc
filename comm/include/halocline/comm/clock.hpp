// SPDX-License-Identifier: Apache-2.0
// A cheap clock for the data path: the processor's time stamp counter where there is one, about 10 ns per reading.
// Readings of ranks on one host can be compared; readings from different hosts can't.
#pragma once

#include <chrono>
#include <cstdint>

namespace halocline::comm {

/// Now, in ticks.
inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
    // Not __rdtsc(): its header takes a third of the compile time of a file that includes plan.hpp.
    return __builtin_ia32_rdtsc();
#else
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                      std::chrono::nanoseconds(1));
#endif
}

/// Seconds per tick, measured once against the steady clock over at least 5 ms.
double seconds_per_tick() noexcept;

/// The length of an interval given in ticks: end - begin. Below 0 where it ends before it begins, which readings of two
/// processors, or of two ranks, may do.
inline double seconds(std::uint64_t interval) noexcept {
    return static_cast<double>(static_cast<std::int64_t>(interval)) * seconds_per_tick();
}

} // namespace halocline::comm
