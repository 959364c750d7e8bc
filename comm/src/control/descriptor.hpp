// SPDX-License-Identifier: Apache-2.0
// A file descriptor that closes itself, the number that may still be opened, and waits for some.
#pragma once

#include <chrono>
#include <cstdint>
#include <poll.h>
#include <span>
#include <string>
#include <unistd.h>
#include <utility>

namespace halocline::comm {

class descriptor {
  public:
    explicit descriptor(int fd = -1) : fd_(fd) {}
    descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    descriptor& operator=(descriptor&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    ~descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    [[nodiscard]] int fd() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

  private:
    int fd_;
};

/// Throws error: the attempted operation, the text for errno, and the remedy if there are no descriptors left.
[[noreturn]] void fail_system(const std::string& what);

/// Number of files, sockets and the like that this process may still open.
std::uint64_t descriptor_room();
/// Where that is less than `count`, raises the soft limit as far as the hard one allows, to make it more. Otherwise the
/// limit stays: select() can't watch descriptors from 1024 on.
void make_descriptor_room(std::uint64_t count) noexcept;

/// poll() that signals don't cut short: one that comes every millisecond, as a profiler's, would end each at once.
int poll_in_spite_of_signals(std::span<pollfd> polled, std::chrono::milliseconds patience) noexcept;

} // namespace halocline::comm
