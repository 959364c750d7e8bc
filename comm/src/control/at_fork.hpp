// SPDX-License-Identifier: Apache-2.0
// What a child of fork() does before anything else.
#pragma once

#include <functional>

namespace halocline::comm {

/// While this object lives, each child of the process that made it first calls a function, in its only thread.
/// Grandchildren don't, nor does a program started by posix_spawn(), as by system().
class at_fork {
  public:
    /// Err: job_error.
    explicit at_fork(std::function<void()> in_child);
    ~at_fork();
    at_fork(const at_fork&) = delete;
    at_fork& operator=(const at_fork&) = delete;

  private:
    struct process;
    std::function<void()> in_child_;
    int pid_;
};

} // namespace halocline::comm
