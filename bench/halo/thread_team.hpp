// SPDX-License-Identifier: Apache-2.0
// A second member of a rank's team, on a core of its own.
#pragma once

#include "support/machine.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

namespace halocline::bench {

class second_thread {
  public:
    /// exchange(): its part of one exchange.  Pre: twice as many cores as `ranks`.
    second_thread(int rank, int ranks, std::function<void()> exchange)
        : thread_([this, rank, ranks, exchange = std::move(exchange)] {
              pin(ranks + rank, 2 * ranks); // behind the first threads of all ranks
              for (std::uint64_t seen = 0;; ++seen) {
                  std::uint64_t now = seen;
                  for (int polls = 0; (now = go_.load(std::memory_order_acquire)) == seen; ++polls)
                      if (polls > 2000) std::this_thread::yield();
                  if (now == stop) return;
                  exchange();
              }
          }) {}
    ~second_thread() {
        go_.store(stop, std::memory_order_release);
        thread_.join();
    }
    second_thread(const second_thread&) = delete;
    second_thread& operator=(const second_thread&) = delete;

    /// The next exchange has begun.
    void go() noexcept { go_.fetch_add(1, std::memory_order_release); }

  private:
    static constexpr std::uint64_t stop = std::uint64_t{1} << 63;
    alignas(64) std::atomic<std::uint64_t> go_{0};
    std::thread thread_; // last: it uses the others
};

} // namespace halocline::bench
