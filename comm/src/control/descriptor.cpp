// SPDX-License-Identifier: Apache-2.0
#include "descriptor.hpp"

#include <halocline/base/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
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

void make_descriptor_room(std::uint64_t count) noexcept {
    try {
        const std::uint64_t room = descriptor_room();
        rlimit files{};
        if (room >= count || getrlimit(RLIMIT_NOFILE, &files) != 0) return;
        files.rlim_cur = std::min<rlim_t>(files.rlim_max, files.rlim_cur + (count - room));
        (void)setrlimit(RLIMIT_NOFILE, &files);
    } catch (const std::exception&) { // no memory to read the directory: the limit stays
    }
}

int poll_in_spite_of_signals(std::span<pollfd> polled, std::chrono::milliseconds patience) noexcept {
    using steady = std::chrono::steady_clock;
    const steady::time_point end = steady::now() + patience;
    while (true) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - steady::now());
        const int ready = ::poll(polled.data(), polled.size(), std::max(0, static_cast<int>(left.count())));
        if (ready >= 0 || errno != EINTR) return ready;
    }
}

} // namespace halocline::comm
