// SPDX-License-Identifier: Apache-2.0
// The library's own messages: a line on stderr, in one piece if the kernel takes it that way.
#pragma once

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <poll.h>
#include <string>
#include <string_view>
#include <unistd.h>

namespace halocline::comm {

/// Drops whatever can't be written within a second: the caller may be about to end the process, and must not wait for a
/// full pipe.
inline void say(std::string text) {
    text += '\n';
    for (std::string_view rest = text; !rest.empty();) {
        pollfd room{STDERR_FILENO, POLLOUT, 0};
        if (::poll(&room, 1, 1000) == 0) return;
        const ssize_t n = ::write(STDERR_FILENO, rest.data(), std::min<std::size_t>(rest.size(), PIPE_BUF));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return;
        rest.remove_prefix(static_cast<std::size_t>(n));
    }
}

} // namespace halocline::comm
