// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../support/huge_pages.hpp"
#include "../support/rounds.hpp"

#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/job.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace halocline::bench::p2p {

/// The persistent path of plans: epochs instead of messages.
class channel_endpoint {
  public:
    channel_endpoint(const comm::job& j, std::size_t bytes)
        : job_(j), request_{1 - j.rank(), 0, 0, bytes, bytes, "pair"}, set_(j, {&request_, 1}, {"p2p", ""}),
          source_(memory_.take(bytes)) {}
    [[nodiscard]] int rank() const { return job_.rank(); }
    std::byte* out(std::size_t) { return source_; }
    std::byte* in(std::size_t bytes) {
        unused_.resize(bytes);
        return unused_.data();
    }
    std::vector<double> slowest(const std::vector<double>& mine) { return bench::slowest(job_, mine); }
    void send(const std::byte* p, std::size_t n) {
        set_.for_each([&](auto& c) {
            std::memcpy(c.target(sent_ + 1), p, n);
            c.send(sent_ + 1, 0);
        });
        ++sent_;
    }
    const std::byte* recv(std::byte*, std::size_t) {
        ++received_;
        if (const comm::status s = set_.wait(received_); s != comm::status::ok) job_.fail(s, set_.pending(received_));
        const std::byte* at = nullptr;
        set_.for_each([&](auto& c) { at = c.received(received_); });
        return at;
    }
    const std::byte* exchange(const std::byte* out, std::byte* in, std::size_t n) {
        send(out, n);
        return recv(in, n);
    }

  private:
    comm::job job_;
    comm::channel_request request_;
    comm::channel_set set_;
    huge_memory memory_;
    std::byte* source_;
    std::vector<std::byte> unused_;
    std::uint64_t sent_ = 0, received_ = 0;
};

} // namespace halocline::bench::p2p
