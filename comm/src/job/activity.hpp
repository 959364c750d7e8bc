// SPDX-License-Identifier: Apache-2.0
// What a rank does, as far as its watchdog (watchdog.hpp) has to know. Written on slow paths only.
#pragma once

#include <atomic>
#include <cstdint>

namespace halocline::comm {

struct activity {
    std::atomic<std::uint64_t> closing{0}; ///< since when (ticks) it has been in a destructor of ours; 0: it is not
    std::atomic<bool> noticed{false};      ///< the end of the job
};

/// For the length of a destructor: libraries may not return from what it asks of them.
class closing_scope {
  public:
    explicit closing_scope(activity& of) noexcept;
    ~closing_scope();
    closing_scope(const closing_scope&) = delete;
    closing_scope& operator=(const closing_scope&) = delete;

  private:
    activity& activity_;
    std::uint64_t outer_;
};

} // namespace halocline::comm
