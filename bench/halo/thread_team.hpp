// SPDX-License-Identifier: Apache-2.0
// The threads that share a rank's exchanges: the rank's own and others, each on a core of its own if there are enough.
// The others poll while the team is at work, and sleep otherwise: during the slices of other contenders.
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

    /// While one exists the team is at work. One at a time, of the thread that is member 0.
    class work {
      public:
        explicit work(thread_team& team) : team_(team) {
            if (team_.others_.empty()) return;
            team_.begun_.fetch_and(~asleep);
            team_.begun_.notify_all();
        }
        ~work() {
            if (!team_.others_.empty()) team_.begun_.fetch_or(asleep);
        }
        work(const work&) = delete;
        work& operator=(const work&) = delete;

      private:
        thread_team& team_;
    };

    /// Begins the next exchange. The caller must do member 0's part.  Pre: the team is at work.
    comm::team begin() noexcept {
        if (!others_.empty()) begun_.fetch_add(1, std::memory_order_release);
        return {0, size_};
    }

  private:
    static constexpr std::uint64_t over = std::uint64_t{1} << 63, asleep = std::uint64_t{1} << 62;
    void follow(comm::team member) {
        for (std::uint64_t done = 0; await_more_than(done) != over; ++done) exchange_(member);
    }
    /// Returns begun_ when the next exchange has begun, or there will be none.
    std::uint64_t await_more_than(std::uint64_t done) noexcept {
        for (int polls = 0;; ++polls) {
            const std::uint64_t begun = begun_.load(std::memory_order_acquire);
            if (begun == (done | asleep)) {
                begun_.wait(begun);
                polls = 0;
            } else if (begun != done) {
                return begun;
            } else if (polls > 2000) {
                std::this_thread::yield();
            }
        }
    }
    void end() {
        begun_.store(over);
        begun_.notify_all();
        for (std::thread& t : others_) t.join();
        others_.clear();
    }

    alignas(64) std::atomic<std::uint64_t> begun_{asleep}; // number of exchanges begun, with the bits above
    std::function<void(comm::team)> exchange_;
    int size_;
    std::vector<std::thread> others_;
};

} // namespace halocline::bench
