// SPDX-License-Identifier: Apache-2.0
// What the library says by itself: a line on stderr, in one piece where the kernel takes it so.
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

/// Drops what nobody takes within a second: who says it may be about to end a process, and is not to wait for a pipe
/// that is full.
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
