// SPDX-License-Identifier: Apache-2.0
// What ranks leave in /dev/shm when they can't remove it themselves: libfabric's files (comm/launch.hpp).
#pragma once

#include <span>
#include <sys/types.h>

/// Removes those of that rank.
void remove_shared_files_of(pid_t rank);

/// A process that outlives the launcher, should that be killed, until its ranks have ended too, and removes their files.
class caretaker {
  public:
    caretaker() = default;
    ~caretaker();
    caretaker(const caretaker&) = delete;
    caretaker& operator=(const caretaker&) = delete;

    /// Once, when all ranks have been started.  Err: error: no process, no descriptor.
    void start(std::span<const pid_t> ranks);

  private:
    pid_t process_ = -1;
    int lifeline_ = -1; // open here only: its end is the end of the launcher
};
