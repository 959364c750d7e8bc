// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/memory_limit.hpp>

#include "node/control_groups.hpp"

#include <algorithm>
#include <fstream>

namespace halocline::comm {
namespace {

/// The number in a file, but at most `most`, which is also what "max", no number and no file mean.
double limit_in(const std::string& file, double most) {
    double bytes = 0;
    return std::ifstream(file) >> bytes ? std::min(bytes, most) : most;
}

} // namespace

std::vector<memory_limit> memory_limits(double memory, double swap, const std::string& process) {
    std::vector<memory_limit> found;
    for (const control_group& g : control_groups(process, "memory")) {
        const double both =
            g.second_version
                ? limit_in(g.folder + "/memory.max", memory) + limit_in(g.folder + "/memory.swap.max", swap)
                : std::min(limit_in(g.folder + "/memory.limit_in_bytes", memory) + swap,
                           limit_in(g.folder + "/memory.memsw.limit_in_bytes", memory + swap));
        if (both < memory + swap) found.push_back({g.name, both});
    }
    return found;
}

} // namespace halocline::comm
