// SPDX-License-Identifier: Apache-2.0
// A file in memory that all ranks of a host open, made independently of the library.
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/comm/job.hpp>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace halocline_test {

/// Collective: opens one file of `bytes` zeroed bytes on all ranks. It has no name that a killed program could leave
/// behind. The caller closes it.  Err: error if ranks don't share a host.
inline int open_shared_file(const halocline::comm::job& j, std::size_t bytes) {
    int file = -1;
    const auto check = [&] {
        if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) != 0)
            throw halocline::error(std::string("shared memory: ") + std::strerror(errno) +
                                   "; the ranks of this program share one host");
    };
    j.collectively([&] {
        if (j.rank() != 0) return;
        file = memfd_create("halocline-test", MFD_CLOEXEC);
        check();
    });
    const std::string place = j.broadcast("/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file));
    j.collectively([&] { // until all have opened it, rank 0 keeps it open
        if (j.rank() == 0) return;
        file = open(place.c_str(), O_RDWR | O_CLOEXEC);
        check();
    });
    return file;
}

} // namespace halocline_test
