// SPDX-License-Identifier: Apache-2.0
// Memory that all ranks of a host map, made independently of the library: for what must not depend on it, as the limits
// and probes of benches, which it is compared with.
#pragma once

#include <halocline_test/shared_file.hpp>

#include <halocline/base/error.hpp>
#include <halocline/comm/job.hpp>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace halocline_test {

class shared_area {
  public:
    /// Collective: bytes_per_rank zeroed bytes for each rank, page-aligned.  Err: error if ranks don't share a host.
    shared_area(const halocline::comm::job& j, std::size_t bytes_per_rank)
        : stride_((bytes_per_rank + 4095) / 4096 * 4096), bytes_(stride_ * static_cast<std::size_t>(j.ranks())) {
        const int file = open_shared_file(j, bytes_);
        void* const p = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
        const int why = errno;
        close(file);
        j.collectively([&] {
            if (p == MAP_FAILED)
                throw halocline::error("mmap of " + std::to_string(bytes_) + " bytes: " + std::strerror(why));
        });
        base_ = static_cast<std::byte*>(p);
    }
    ~shared_area() { munmap(base_, bytes_); }
    shared_area(const shared_area&) = delete;
    shared_area& operator=(const shared_area&) = delete;

    [[nodiscard]] std::byte* of(int rank) const { return base_ + stride_ * static_cast<std::size_t>(rank); }

  private:
    std::size_t stride_, bytes_;
    std::byte* base_ = nullptr;
};

} // namespace halocline_test
