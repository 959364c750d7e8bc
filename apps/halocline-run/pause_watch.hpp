// SPDX-License-Identifier: Apache-2.0
// Notices that this process was stopped, or its machine was: the ranks were too, and can't have ended meanwhile.
#pragma once

#include <chrono>
#include <utility>

namespace halocline::app {

class pause_watch {
  public:
    using clock_type = std::chrono::steady_clock;

    /// How long it was stopped since the last call; zero unless that call was longer ago than a busy machine explains.
    /// Called every 100 ms, or more often.
    clock_type::duration missed() {
        const auto now = clock_type::now();
        const auto gap = now - std::exchange(last_, now);
        return gap > std::chrono::milliseconds(250) ? gap : clock_type::duration::zero();
    }

  private:
    clock_type::time_point last_ = clock_type::now();
};

} // namespace halocline::app
