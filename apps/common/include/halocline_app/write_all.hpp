// SPDX-License-Identifier: Apache-2.0
// Text to a descriptor, whole. Standard output may be given to us as non-blocking, because another process that shares
// it wants it so: then we wait until there is room.
#pragma once

#include <cerrno>
#include <poll.h>
#include <string_view>
#include <unistd.h>

namespace halocline::app {

/// Returns 0, or errno: what follows could not be written.
[[nodiscard]] inline int write_all(int file, std::string_view text) {
    while (!text.empty()) {
        const ssize_t n = ::write(file, text.data(), text.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) {
            pollfd room{file, POLLOUT, 0};
            ::poll(&room, 1, -1);
            continue;
        }
        if (n <= 0) return n < 0 ? errno : EIO;
        text.remove_prefix(static_cast<std::size_t>(n));
    }
    return 0;
}

} // namespace halocline::app
