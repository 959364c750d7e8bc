// SPDX-License-Identifier: Apache-2.0
#include "descriptor.hpp"

#include <halocline/base/error.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <sys/resource.h>
#include <system_error>

namespace halocline::comm {

void fail_system(const std::string& what) {
    const int code = errno;
    const char* const remedy = code == EMFILE   ? "; raise 'ulimit -n'"
                               : code == ENFILE ? "; the whole system has no more (sysctl fs.file-max)"
                                                : "";
    throw error(what + ": " + std::strerror(code) + remedy);
}

std::uint64_t descriptor_room() {
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY)
        return std::numeric_limits<std::uint64_t>::max();
    std::error_code none_left; // reading the directory needs a descriptor itself
    std::uint64_t open = 0;
    for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/fd", none_left)) ++open;
    if (none_left == std::errc::too_many_files_open) return 0;
    return files.rlim_cur >= open ? files.rlim_cur - open + 1 : 0;
}

} // namespace halocline::comm
