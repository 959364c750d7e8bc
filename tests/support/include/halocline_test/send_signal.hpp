// SPDX-License-Identifier: Apache-2.0
// kill() that can only hit the one process it is meant for.
#pragma once

#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <string>
#include <system_error>
#include <sys/types.h>

namespace halocline_test {

/// To kill(), 0 means this process group and -1 every process of the machine: a job that did not start must not end
/// those.  Err: std::logic_error if `process` is not the number of a process; std::system_error.
inline void send_signal(pid_t process, int number) {
    if (process <= 1)
        throw std::logic_error("signal " + std::to_string(number) + " to process " + std::to_string(process));
    if (::kill(process, number) != 0) {
        throw std::system_error(errno, std::generic_category(),
                                "signal " + std::to_string(number) + " to process " + std::to_string(process));
    }
}

} // namespace halocline_test
