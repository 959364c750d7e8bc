// SPDX-License-Identifier: Apache-2.0
// Two ranks that wait for each other, each in a call that the other has not made: start() against start_reverse(), sums
// or exchanges in different orders. Neither wait would end before its deadline.
//
// A rank that has waited for a while writes what it waits for into its record. If it sees that a peer waits for
// something that it has not begun, it writes that, too. It begins nothing before its own wait ends; so if two ranks have
// each written this about what the other waits for, neither wait can end. Messages under way, peers that are ahead, and calls
// that cross but overlap (begin A, begin B; begin B, begin A) don't look like that. A rank of which several threads
// begin epochs says nothing: one of them may begin what the peer waits for during the wait of another. A rank whose
// process has threads that have begun nothing yet, and might, says so only when the deadline is about to end the job.
#pragma once

#include <halocline/comm/detail/thread_mark.hpp>
#include <halocline/comm/status.hpp>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace halocline::comm {

class job_core;

/// The channel sets of a rank whose epochs are begun by calls of the program.
class crossed_waits {
  public:
    struct watched_set {
        std::string name;
        std::vector<int> peers; ///< in ascending order
        /// Between sets of one owner nothing is crossed: it finds out itself.
        const void* owner = nullptr;
        std::uint64_t (*begun)(const void* owner) = nullptr; ///< the epoch begun last; `never`: it is not to be told
    };
    static constexpr std::uint64_t never = ~std::uint64_t{0};
    void add(std::uint32_t plan_id, watched_set set);
    void remove(std::uint32_t plan_id) noexcept;

    /// To be called by each thread that begins an epoch of a watched set, before it does.  Cost: below a nanosecond.
    void note_thread() noexcept {
        if (thread_.load(std::memory_order_relaxed) != thread_mark()) note_other_thread();
    }
    /// note_thread() has nothing to do for the thread of this mark.
    [[nodiscard]] const std::atomic<const void*>& noted_thread() const noexcept { return thread_; }
    /// To be called now and then in a wait for that epoch of a set, which began at `since` (ticks). If the wait is
    /// crossed with a peer's, ends the job, and returns the status with which it ended.  Cost: a few loads per peer of
    /// the set; a system call if the waits look crossed. Never blocks, but for the first call of a rank's second thread.
    [[nodiscard]] status look(job_core& core, std::uint32_t plan_id, std::uint64_t epoch, std::uint64_t since) noexcept;
    /// Such a wait has ended.
    void over(job_core& core) noexcept;

  private:
    void note_other_thread() noexcept;
    /// nullptr: there is none.
    [[nodiscard]] const watched_set* find(std::uint32_t plan_id) const noexcept;

    std::atomic<const void*> thread_{nullptr}; ///< the first that made a set, began an epoch, or waited for long
    std::atomic<bool> several_{false};         ///< so did another one; set under the mutex
    std::mutex mutex_;                         // of what follows
    std::map<std::uint32_t, watched_set> sets_;
};

} // namespace halocline::comm
