// SPDX-License-Identifier: Apache-2.0
// What a program does last that ends well without having closed its job.
#pragma once

#include <functional>

namespace halocline::comm {

/// While this object lives, exit(0), or a return of 0 from main(), calls a function. Another exit code does not, nor
/// does the end of a child of fork() or an end without exit handlers: those are for others to notice.
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
