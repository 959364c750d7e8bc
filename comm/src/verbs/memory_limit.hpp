// SPDX-License-Identifier: Apache-2.0
// The hint about the limit on locked memory, for failed registrations.
#pragma once

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

} // namespace halocline::comm
