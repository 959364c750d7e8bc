// SPDX-License-Identifier: Apache-2.0
// Memory that all ranks of a host map, made independently of the library, for limits that it is compared with: in the
// same kind of pages as its slabs.
#pragma once

#include "support/huge_pages.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/job.hpp>
#include <halocline_test/shared_file.hpp>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace halocline::bench {

class shared_pages {
  public:
    /// Collective: at least bytes_per_rank zeroed bytes for each rank, from a multiple of a huge page on, and all
    /// mapped.  Err: error if ranks don't share a host.
    shared_pages(const comm::job& j, std::size_t bytes_per_rank)
        : stride_(round_up(bytes_per_rank, huge_page_bytes)), bytes_(stride_ * static_cast<std::size_t>(j.ranks())) {
        const int file = halocline_test::open_shared_file(j, bytes_);
        base_ = map_aligned(bytes_, file);
        const int why = errno;
        close(file);
        j.collectively([&] {
            if (base_ == nullptr) throw error("mmap of " + std::to_string(bytes_) + " bytes: " + std::strerror(why));
        });
        make_huge(of(j.rank()), stride_);
        touch(of(j.rank()), stride_); // where no page could be made huge
        j.barrier();                  // each page is its owner's before others touch it
        touch(base_, bytes_);
    }
    ~shared_pages() { munmap(base_, bytes_); }
    shared_pages(const shared_pages&) = delete;
    shared_pages& operator=(const shared_pages&) = delete;

    [[nodiscard]] std::byte* of(int rank) const { return base_ + stride_ * static_cast<std::size_t>(rank); }

  private:
    static void touch(std::byte* p, std::size_t bytes) {
        for (std::size_t at = 0; at < bytes; at += 4096) (void)*static_cast<volatile std::byte*>(p + at);
    }
    std::size_t stride_, bytes_;
    std::byte* base_ = nullptr;
};

} // namespace halocline::bench
