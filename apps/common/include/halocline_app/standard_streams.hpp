// SPDX-License-Identifier: Apache-2.0
// A program may be started with standard input, output or error closed. The next files and sockets would then get their
// numbers, and what is printed would go to a peer.
#pragma once

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

namespace halocline::app {

/// Opens /dev/null in place of each closed standard stream. Must be the first thing a program does.
inline void keep_standard_streams() {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF) [[maybe_unused]]
            const int opened = ::open("/dev/null", O_RDWR); // the lowest free number: this one
    }
}

} // namespace halocline::app
