// SPDX-License-Identifier: Apache-2.0
// What ranks leave in /dev/shm if they can't remove it themselves: files of libfabric's provider shm (comm/launch.hpp).
// Those of its endpoints have names until all ranks have joined (comm/src/ofi/world.cpp); those with which it moves
// large messages, if ranks may not read each other's memory, have names as long as the message is under way.
#pragma once

#include <string>
#include <sys/types.h>

namespace halocline::app {

/// Removes the files of that rank.
void remove_shared_files_of(pid_t rank);

/// A process that removes the files of all ranks once they have ended, and ends what they have started, in case the
/// launcher is killed: its ranks are killed with it, at any moment, and none of them can do it. Otherwise the launcher
/// does.
class caretaker {
  public:
    caretaker() = default;
    ~caretaker();
    caretaker(const caretaker&) = delete;
    caretaker& operator=(const caretaker&) = delete;

    /// Call once, before ranks are started: the launcher may be killed meanwhile.  `job`: their launch::job_variable.
    /// Err: input_error: no process, no descriptor.
    void start(const std::string& job);
    /// A rank has been started.
    void add(pid_t rank) const;
    /// Was it that process which has ended, and was waited for? Then nothing is sent to that pid any more.
    bool reaped(pid_t pid);
    /// Ends it: the launcher does the rest itself.
    void dismiss();

  private:
    pid_t process_ = -1;
    int lifeline_ = -1; // with the ranks' numbers; open only here: it ends when the launcher ends
};

} // namespace halocline::app
