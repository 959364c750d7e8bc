// SPDX-License-Identifier: Apache-2.0
// Processes that ranks have started and not waited for, such as the program in a wrapper script that was killed.
#pragma once

#include <map>
#include <string>
#include <sys/types.h>

namespace halocline::app {

/// The name of caretakers (caretaker.hpp), of jobs inside a rank, too: they end by themselves, and are not killed here.
inline constexpr const char* caretakers_name = "halocline-tidy";

/// Descendants of this process but for those that it had when this object was made, and theirs: a program that is
/// started by a shell's `exec`, or whose output goes to `>(tee log)`, has children of that shell.
class leftovers {
  public:
    /// From now on descendants of this process become its children when their parent ends.  Cost: reads /proc.
    leftovers();
    /// Collects the children that have ended. Are there others?  Cost: reads /proc if there were any at the start.
    [[nodiscard]] bool any() const;
    /// Kills and collects them. Returns those that were there first, as "heat4d (pid 4711), …", some of them if they
    /// are many.  Cost: reads /proc, again and again until none is left; 2 s at most.
    [[nodiscard]] std::string kill() const;

  private:
    [[nodiscard]] bool was_there_before(pid_t process) const;

    std::map<pid_t, std::string> before_; // when each was started: numbers are given away again
};

/// Kills all processes that have launch::job_variable=`job` in their environment, once they have had 2 s to end.
void kill_job(const std::string& job);

} // namespace halocline::app
