// SPDX-License-Identifier: Apache-2.0
#include "support/shared_area.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace halocline::bench {

shared_area::shared_area(const comm::job& j, std::size_t bytes_per_rank)
    : stride_((bytes_per_rank + 4095) / 4096 * 4096), bytes_(stride_ * static_cast<std::size_t>(j.ranks())) {
    int file = -1; // rank 0's has no name that a killed bench could leave behind
    const auto map = [&] {
        if (file < 0 || ftruncate(file, static_cast<off_t>(bytes_)) != 0)
            throw error(std::string("shared memory: ") + std::strerror(errno) +
                        "; the ranks of this bench share one host");
        void* const p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
        if (p == MAP_FAILED) throw error("mmap of " + std::to_string(bytes_) + " bytes: " + std::strerror(errno));
        base_ = static_cast<std::byte*>(p);
    };
    j.collectively([&] {
        if (j.rank() != 0) return;
        file = memfd_create("halocline-bench", MFD_CLOEXEC);
        map();
    });
    const std::string place = j.broadcast("/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file));
    j.collectively([&] {
        if (j.rank() == 0) return;
        file = open(place.c_str(), O_RDWR | O_CLOEXEC);
        map();
    });
    close(file);
}

shared_area::~shared_area() { munmap(base_, bytes_); }

} // namespace halocline::bench
