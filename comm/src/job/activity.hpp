// SPDX-License-Identifier: Apache-2.0
// What a rank is doing, as far as its watchdog (watchdog.hpp) needs to know. Written on slow paths only.
#pragma once

#include <halocline/comm/clock.hpp>

#include <atomic>
#include <cstdint>

namespace halocline::comm {

struct activity {
    /// Since when (ticks) the rank has been in a destructor of this library; 0: it is not.
    std::atomic<std::uint64_t> closing{0};
    std::atomic<bool> knows_of_end{false};     ///< has it noticed the end of the job?
    std::atomic<bool> tells_end_itself{false}; ///< has an exception ended its program, which is told by the program?
    std::atomic<bool> threw_job_error{false};  ///< was an exception of the job thrown, possibly only on this rank?
    /// Calls of other libraries that may not return, begun and ended: odd while in one.
    std::atomic<std::uint64_t> library_calls{0};
    std::atomic<int> library_call_for{-1}; ///< the peer that such a call needs; -1: several
};

/// Marks a call of another library while it lasts; deadlines are not checked inside it.
class blocking_call {
  public:
    /// `of`: nullptr if nobody watches.
    blocking_call(activity* of, int peer) noexcept : activity_(of) {
        if (activity_ == nullptr) return;
        activity_->library_call_for.store(peer, std::memory_order_relaxed);
        activity_->library_calls.fetch_add(1, std::memory_order_release);
    }
    ~blocking_call() {
        if (activity_ != nullptr) activity_->library_calls.fetch_add(1, std::memory_order_release);
    }
    blocking_call(const blocking_call&) = delete;
    blocking_call& operator=(const blocking_call&) = delete;

  private:
    activity* activity_;
};

/// Marks a destructor while it lasts: library calls made by it may not return.
class closing_scope {
  public:
    explicit closing_scope(activity& of) noexcept : activity_(of), outer_(of.closing.load(std::memory_order_relaxed)) {
        if (outer_ == 0) activity_.closing.store(ticks(), std::memory_order_relaxed);
    }
    ~closing_scope() { activity_.closing.store(outer_, std::memory_order_relaxed); }
    closing_scope(const closing_scope&) = delete;
    closing_scope& operator=(const closing_scope&) = delete;

  private:
    activity& activity_;
    std::uint64_t outer_;
};

} // namespace halocline::comm
