// SPDX-License-Identifier: Apache-2.0
// What a program does last that ends well without having closed its job.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <thread>

namespace halocline::comm {

/// Locks a mutex, for an exit handler: whoever holds it will let it go soon, unless the handler interrupted just that.
template <class Mutex>
[[nodiscard]] std::unique_lock<Mutex> lock_at_exit(Mutex& mutex) {
    std::unique_lock lock(mutex, std::try_to_lock);
    for (int ms = 0; ms < 1000 && !lock; ++ms) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        lock.try_lock();
    }
    return lock;
}

/// While this object lives, exit(0), or a return of 0 from main(), calls a function. Another exit code does not, nor
/// does the end of a child of fork() or an end without exit handlers: those are for others to notice. The handler stays
/// until the program ends, so the library that contains it must not be unloaded before.
class at_good_exit {
  public:
    /// Err: job_error.
    explicit at_good_exit(std::function<void()> last);
    ~at_good_exit();
    at_good_exit(const at_good_exit&) = delete;
    at_good_exit& operator=(const at_good_exit&) = delete;

  private:
    struct process;
    std::function<void()> last_;
    int pid_;
};

} // namespace halocline::comm
