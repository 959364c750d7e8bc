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
    static int areas = 0;
    const std::string name =
        j.broadcast("/halocline-bench-" + std::to_string(getpid()) + "-" + std::to_string(areas++));
    const auto map = [&](int how) {
        const int fd = shm_open(name.c_str(), how, 0600);
        if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes_)) != 0)
            throw error("shm_open '" + name + "': " + std::strerror(errno) +
                        "; the ranks of this bench share one host");
        void* const p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
        close(fd);
        if (p == MAP_FAILED) throw error("mmap of " + std::to_string(bytes_) + " bytes: " + std::strerror(errno));
        base_ = static_cast<std::byte*>(p);
    };
    j.collectively([&] {
        if (j.rank() == 0) map(O_RDWR | O_CREAT | O_EXCL);
    });
    j.collectively([&] {
        if (j.rank() != 0) map(O_RDWR);
    });
    j.barrier();
    if (j.rank() == 0) shm_unlink(name.c_str());
}

shared_area::~shared_area() { munmap(base_, bytes_); }

} // namespace halocline::bench
