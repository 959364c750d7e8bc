// SPDX-License-Identifier: Apache-2.0
// Which processors belong to this job. Jobs on one machine don't know of each other; so that their ranks are not bound
// to the same processors, each launcher holds a lock on the folder that /sys has for a processor, as long as it runs.
// No file is made or left behind, and no permission is needed. Containers with their own network namespace have their
// own folders.
#pragma once

#include "control/descriptor.hpp"

#include <span>
#include <string>
#include <vector>

namespace halocline::app {

class processor_claims {
  public:
    /// The first `count` of `usable` that no other job has claimed; empty, claiming nothing, if there are fewer.
    /// A processor whose folder can't be opened counts as free.  Cost: a descriptor for each.
    [[nodiscard]] std::vector<int> take(std::span<const int> usable, std::size_t count,
                                        const std::string& system = "/sys/devices/system/cpu");

  private:
    std::vector<comm::descriptor> held_;
};

} // namespace halocline::app
