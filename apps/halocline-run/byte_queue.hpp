// SPDX-License-Identifier: Apache-2.0
// Bytes that wait for room in a descriptor.
#pragma once

#include <halocline/comm/detail/byte_queue.hpp>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <poll.h>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

namespace halocline::app {

/// So much of what ranks have printed may wait in the launcher, and in each agent: then its source waits, too.
inline constexpr std::size_t most_output = 1 << 20;
/// So much of a line waits for its end.
inline constexpr std::size_t longest_line = 65536;

class byte_queue : public comm::byte_queue {
  public:
    byte_queue& append(std::string_view more) {
        bytes().append(more);
        return *this;
    }
    void clear() { remove(size()); }

    /// Writes as much as `file` takes without blocking: PIPE_BUF bytes whenever it is ready, because other processes
    /// may share it and want it to block.  Returns 0, or errno: what is left can't be written.
    [[nodiscard]] int write_to(int file) {
        pollfd room{file, POLLOUT, 0};
        while (!empty() && poll(&room, 1, 0) > 0) {
            const std::size_t most = std::min<std::size_t>(size(), PIPE_BUF);
            const ssize_t n = ::write(file, data(), most);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0 && errno == EAGAIN) return 0;
            if (n <= 0) return n < 0 ? errno : EIO;
            remove(static_cast<std::size_t>(n));
        }
        return 0;
    }

    /// Sends as much as the socket takes without blocking. What nobody will read any more is removed, too.
    void send_to(int socket) {
        while (!empty()) {
            const ssize_t n = ::send(socket, data(), size(), MSG_NOSIGNAL | MSG_DONTWAIT);
            if (n <= 0) {
                if (n < 0 && errno != EAGAIN && errno != EINTR) clear();
                return;
            }
            remove(static_cast<std::size_t>(n));
        }
    }
};

} // namespace halocline::app
