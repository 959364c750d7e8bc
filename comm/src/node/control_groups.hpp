// SPDX-License-Identifier: Apache-2.0
// The control groups that can limit a process (a container, a batch job), as far as it sees them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace halocline::comm {

struct control_group {
    std::string name; ///< identical for all processes of one kernel that are in it
    std::string folder;
    bool second_version = false;
};

/// Those of one controller (cpu, memory) around a process, from its own outwards. Those of version 2 have the
/// controller's files only if it is enabled there. `process` holds the files "cgroup" and "mountinfo".
[[nodiscard]] std::vector<control_group> control_groups(const std::string& process, std::string_view controller);

} // namespace halocline::comm
