// SPDX-License-Identifier: Apache-2.0
// The hint about the limit on locked memory, for failed registrations.
#pragma once

#include <cerrno>
#include <string>
#include <sys/resource.h>

namespace halocline::comm {

/// "this process may lock 8192 KiB (ulimit -l), ...", and the remedy.
[[nodiscard]] inline std::string memlock_advice() {
    rlimit limit{};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur == RLIM_INFINITY)
        return "this process may lock any amount (ulimit -l): the device or the memory has no more";
    return "this process may lock " + std::to_string(limit.rlim_cur / 1024) +
           " KiB (ulimit -l), and other plans share that; raise it: ulimit -l unlimited, or memlock in "
           "/etc/security/limits.conf";
}

/// The same, to be appended to the text of an error with that errno if the limit may be its cause; else empty.
[[nodiscard]] inline std::string memlock_advice_if(int why) {
    return why == ENOMEM || why == EAGAIN ? "; " + memlock_advice() : std::string();
}

} // namespace halocline::comm
