// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../support/huge_pages.hpp"
#include "../support/rounds.hpp"

#include <halocline/comm/connection.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/slab.hpp>
#include <halocline/comm/window.hpp>

#include <cstddef>
#include <memory_resource>
#include <span>
#include <vector>

namespace halocline::bench::p2p {

/// A window each way into an array in the slab, where an MPI code had persistent requests; the source is also in the
/// slab, or elsewhere.
class window_endpoint {
  public:
    window_endpoint(const comm::job& j, std::size_t bytes, bool from_slab)
        : job_(j), out_(bytes, from_slab ? static_cast<std::pmr::memory_resource*>(&job_.memory()) : &elsewhere_),
          in_(bytes, &job_.memory()), pair_(job_, 1 - j.rank()), to_(pair_, std::span(out_)),
          from_(pair_, std::span(in_)) {
        pair_.connect();
    }
    [[nodiscard]] int rank() const { return job_.rank(); }
    std::byte* out(std::size_t) { return out_.data(); }
    std::byte* in(std::size_t) { return in_.data(); }
    std::vector<double> slowest(const std::vector<double>& mine) { return bench::slowest(job_, mine); }
    void send(const std::byte*, std::size_t n) {
        to_.init();
        to_.post(n);
        to_.wait_or_throw();
    }
    const std::byte* recv(std::byte*, std::size_t) {
        from_.start();
        from_.wait_or_throw();
        return in_.data();
    }
    const std::byte* exchange(const std::byte*, std::byte*, std::size_t n) {
        from_.start();
        to_.init();
        to_.post(n);
        from_.wait_or_throw();
        to_.wait_or_throw();
        return in_.data();
    }

  private:
    comm::job job_;
    huge_memory elsewhere_;
    std::pmr::vector<std::byte> out_, in_;
    comm::connection pair_;
    comm::send_window<std::byte> to_;
    comm::recv_window<std::byte> from_;
};

} // namespace halocline::bench::p2p
