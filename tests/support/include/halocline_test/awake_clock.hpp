// SPDX-License-Identifier: Apache-2.0
// Time without the pauses of this process or of its machine, which deadlines of the library don't count either.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

namespace halocline_test {

/// Counts from its construction, while somebody looks every few milliseconds: of each longer time only 60 ms.
class awake_clock {
  public:
    using clock_type = std::chrono::steady_clock;

    /// One thread.
    clock_type::duration look() {
        const auto now = clock_type::now();
        const clock_type::duration most = std::chrono::milliseconds(60);
        return passed_ = passed_.load() + std::min(now - std::exchange(last_, now), most);
    }
    void sleep_until(clock_type::duration time) {
        while (look() < time) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    /// As of the last look. Any thread.
    [[nodiscard]] clock_type::duration passed() const { return passed_; }

  private:
    clock_type::time_point last_ = clock_type::now();
    std::atomic<clock_type::duration> passed_{clock_type::duration::zero()};
};

} // namespace halocline_test
