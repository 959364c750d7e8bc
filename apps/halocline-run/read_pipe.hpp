// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <sys/ioctl.h>
#include <unistd.h>

namespace halocline::app {

/// Passes what is in a pipe now to `take`, in pieces: ranks that print all the time would never let it become empty.
/// False: it is at its end; nobody can write to it any more.  Pre: reading it does not block.
template <class Take>
bool read_pipe(int pipe, Take take) {
    int left = 0;
    if (ioctl(pipe, FIONREAD, &left) != 0) return true;
    do {
        std::array<char, 4096> buffer;
        const ssize_t n = ::read(pipe, buffer.data(), buffer.size());
        if (n <= 0) return n < 0;
        take(std::string_view(buffer.data(), static_cast<std::size_t>(n)));
        left -= static_cast<int>(n);
    } while (left > 0);
    return true;
}

} // namespace halocline::app
