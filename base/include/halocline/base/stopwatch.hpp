// SPDX-License-Identifier: Apache-2.0
// Elapsed time, by a clock that never goes back.
#pragma once

#include <chrono>

namespace halocline {

/// Measures seconds since it was made.
class stopwatch {
  public:
    [[nodiscard]] double seconds() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    }

  private:
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

} // namespace halocline
