// SPDX-License-Identifier: Apache-2.0
// The threads that share a rank's exchanges: the rank's own and others, each on a core of its own if there are enough.
#pragma once

#include "support/machine.hpp"

#include <halocline/comm/processors.hpp>
#include <halocline/comm/team.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace halocline::bench {

class thread_team {
  public:
    /// exchange(member): the member's part of one exchange. Member 0 is the caller's thread, which does its part
    /// itself.
    thread_team(int rank, int ranks, int size, std::function<void(comm::team)> exchange)
        : exchange_(std::move(exchange)), size_(size) {
        try {
            for (int member = 1; member < size; ++member)
                // Processors after those of the lower members of all ranks.
                others_.emplace_back([this, member, place = member * ranks + rank, threads = size * ranks] {
                    if (!pin(place, threads)) comm::bind_to(usable()); // else it would share member 0's
                    follow({member, size_});
                });
        } catch (...) { // the system can't make another thread
            end();
            throw;
        }
    }
    ~thread_team() { end(); }
    thread_team(const thread_team&) = delete;
    thread_team& operator=(const thread_team&) = delete;

    /// Begins the next exchange. The caller must do member 0's part.
    comm::team begin() noexcept {
        if (!others_.empty()) begun_.fetch_add(1, std::memory_order_release);
        return {0, size_};
    }

  private:
    static constexpr std::uint64_t over = std::uint64_t{1} << 63;
    void follow(comm::team member) {
        for (std::uint64_t done = 0;; ++done) {
            std::uint64_t begun = done;
            for (int polls = 0; (begun = begun_.load(std::memory_order_acquire)) == done; ++polls)
                if (polls > 2000) std::this_thread::yield();
            if (begun == over) return;
            exchange_(member);
        }
    }
    void end() {
        begun_.store(over, std::memory_order_release);
        for (std::thread& t : others_) t.join();
        others_.clear();
    }

    alignas(64) std::atomic<std::uint64_t> begun_{0};
    std::function<void(comm::team)> exchange_;
    int size_;
    std::vector<std::thread> others_;
};

} // namespace halocline::bench
