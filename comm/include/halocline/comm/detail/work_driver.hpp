// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <halocline/comm/detail/thread_mark.hpp>

#include <atomic>
#include <cstdint>
#include <sched.h>
#include <unistd.h>

namespace halocline::comm {

/// Which thread of a rank drives a piece of work: it does it in its calls about that work, and in its waits for anything
/// else. A call by another thread takes it over, and begins when no wait of the former driver is at it any more.
class work_driver {
  public:
    /// From now on the calling thread drives.  Cost: a load if it did before. Otherwise waits for the end of what a wait
    /// of the former driver is just doing.
    /// Pre: no other thread is in a call about this work. If one is all the same, nobody hangs.
    void take_over() noexcept {
        const std::uintptr_t self = own_mark();
        std::uintptr_t now = driver_.load(std::memory_order_acquire);
        for (std::uint32_t looks = 1; (now & ~in_wait) != self; ++looks) {
            if ((now & in_wait) != 0 && (looks % looks_per_check != 0 || ::getpid() == process_)) {
                sched_yield(); // the other thread may have lost its core
                now = driver_.load(std::memory_order_acquire);
            } else if (driver_.compare_exchange_weak(now, self, std::memory_order_acq_rel, std::memory_order_acquire)) {
                return; // in a child of fork() also from a thread that is not there
            }
        }
    }
    /// Nobody drives: no wait does the work.  Pre: the calling thread drives, or nobody does.
    void give_up() noexcept { driver_.store(0, std::memory_order_release); }
    /// To be called in every wait: calls work(), which does not wait, if the calling thread drives. work() may give up.
    template <class Work>
    void work_in_wait(Work&& work) noexcept {
        const std::uintptr_t self = own_mark();
        std::uintptr_t now = self;
        // Its own mark is there only if this thread has stored it, but another one may be taking over.
        if (driver_.load(std::memory_order_relaxed) != self ||
            !driver_.compare_exchange_strong(now, self | in_wait, std::memory_order_acquire, std::memory_order_relaxed))
            return;
        work();
        if (driver_.load(std::memory_order_relaxed) == (self | in_wait)) driver_.store(self, std::memory_order_release);
    }

  private:
    static std::uintptr_t own_mark() noexcept { return reinterpret_cast<std::uintptr_t>(thread_mark()); }
    static constexpr std::uintptr_t in_wait = 1; // marks are even
    static constexpr std::uint32_t looks_per_check = 1024;

    std::atomic<std::uintptr_t> driver_{0}; // its mark, and whether a wait of it is at the work; 0: nobody
    pid_t process_ = ::getpid();
};

} // namespace halocline::comm
