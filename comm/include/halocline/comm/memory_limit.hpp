// SPDX-License-Identifier: Apache-2.0
// Limits on memory. Linux can limit a control group (a container, a batch job) to less than the host has; its processes
// are killed when they need more.
#pragma once

#include <string>
#include <vector>

namespace halocline::comm {

/// The limit of one control group.
struct memory_limit {
    std::string group; ///< identical for all processes of one kernel that share this limit
    double bytes = 0;  ///< of memory and swap together
};

/// All limits of the calling process on a host with `memory` and `swap` bytes that are below their sum: that of its own
/// control group, and those of enclosing ones as far as they are visible. Reads memory.max and memory.swap.max of
/// control groups v2, memory.limit_in_bytes and memory.memsw.limit_in_bytes of v1; a missing file or one that can't be
/// parsed means no limit. `process` holds the files "cgroup" and "mountinfo".
[[nodiscard]] std::vector<memory_limit> memory_limits(double memory, double swap,
                                                      const std::string& process = "/proc/self");

} // namespace halocline::comm
