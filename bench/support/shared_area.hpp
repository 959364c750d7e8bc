// SPDX-License-Identifier: Apache-2.0
// Memory that all ranks of a host map, made independently of the library: for limits and probes, which must not depend
// on what they are compared with.
#pragma once

#include <halocline/comm/job.hpp>

#include <cstddef>

namespace halocline::bench {

class shared_area {
  public:
    /// Collective: bytes_per_rank zeroed bytes for each rank, page-aligned.  Err: error if ranks don't share a host.
    shared_area(const comm::job& j, std::size_t bytes_per_rank);
    ~shared_area();
    shared_area(const shared_area&) = delete;
    shared_area& operator=(const shared_area&) = delete;

    [[nodiscard]] std::byte* of(int rank) const { return base_ + stride_ * static_cast<std::size_t>(rank); }

  private:
    std::size_t stride_, bytes_;
    std::byte* base_ = nullptr;
};

} // namespace halocline::bench
