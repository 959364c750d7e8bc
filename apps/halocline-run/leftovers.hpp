// SPDX-License-Identifier: Apache-2.0
// Processes that ranks have started and not waited for, such as the program in a wrapper script that was killed.
#pragma once

#include <string>

namespace halocline::app {

/// The name of caretakers (caretaker.hpp), of jobs inside a rank, too: they end by themselves, and are not killed here.
inline constexpr const char* caretakers_name = "halocline-tidy";

/// From now on descendants of this process become its children when their parent ends.
void adopt_orphans();
/// Collects the children that have ended. Are there others?
[[nodiscard]] bool has_children();
/// Kills all descendants of this process, which has adopted orphans, and collects them. Returns those that were there
/// first, as "heat4d (pid 4711), …", some of them if they are many.
/// Cost: reads /proc, again and again until none is left; 2 s at most.
std::string kill_descendants();
/// Kills all processes that have launch::job_variable=`job` in their environment, once they have had 2 s to end.
void kill_job(const std::string& job);

} // namespace halocline::app
