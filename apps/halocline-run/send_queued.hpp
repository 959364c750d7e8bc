// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <string>
#include <sys/socket.h>

namespace halocline::app {

/// Sends as much of `queue` as the socket takes without blocking, and removes it there; also everything, if nobody will
/// read it any more.
inline void send_queued(int socket, std::string& queue) {
    while (!queue.empty()) {
        const ssize_t n = ::send(socket, queue.data(), queue.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n <= 0) {
            if (n < 0 && errno != EAGAIN && errno != EINTR) queue.clear();
            return;
        }
        queue.erase(0, static_cast<std::size_t>(n));
    }
}

} // namespace halocline::app
