// SPDX-License-Identifier: Apache-2.0
#include "processor_claims.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>

namespace halocline::app {

std::vector<int> processor_claims::take(std::span<const int> usable, std::size_t count, const std::string& system) {
    std::vector<int> taken;
    for (const int p : usable) {
        if (taken.size() == count) break;
        comm::descriptor folder(
            open((system + "/cpu" + std::to_string(p)).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (folder && flock(folder.fd(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) continue;
        taken.push_back(p);
        held_.push_back(std::move(folder));
    }
    if (taken.size() == count) return taken;
    held_.clear();
    return {};
}

} // namespace halocline::app
