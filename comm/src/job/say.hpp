// SPDX-License-Identifier: Apache-2.0
// What the library says by itself: a line on stderr, in one piece where the kernel takes it so.
#pragma once

#include <cerrno>
#include <string>
#include <string_view>
#include <unistd.h>

namespace halocline::comm {

inline void say(std::string text) {
    text += '\n';
    for (std::string_view rest = text; !rest.empty();) {
        const ssize_t n = ::write(STDERR_FILENO, rest.data(), rest.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return;
        rest.remove_prefix(static_cast<std::size_t>(n));
    }
}

} // namespace halocline::comm
