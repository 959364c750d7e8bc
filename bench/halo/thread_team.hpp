// SPDX-License-Identifier: Apache-2.0
// The threads of a rank that share its exchanges: the rank's own and others, each on a core of its own where there are
// enough.
#pragma once

#include "support/machine.hpp"

#include <halocline/comm/processors.hpp>
#include <halocline/comm/team.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace halocline::bench {

class thread_team {
  public:
    /// exchange(member): its part of one exchange; of member 0 the caller's own thread, which calls it itself.
    thread_team(int rank, int ranks, int size, std::function<void(comm::team)> exchange)
        : exchange_(std::move(exchange)), size_(size) {
        try {
            for (int member = 1; member < size; ++member)
                // Behind the members before it of all ranks.
                others_.emplace_back([this, member, place = member * ranks + rank, threads = size * ranks] {
                    if (!pin(place, threads)) comm::bind_to(usable()); // else it would share the first one's
                    follow({member, size_});
                });
        } catch (...) { // the system has no more threads
            end();
            throw;
        }
    }
    ~thread_team() { end(); }
    thread_team(const thread_team&) = delete;
    thread_team& operator=(const thread_team&) = delete;

    /// The next exchange begins.  Member 0's part of it is the caller's to do.
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
