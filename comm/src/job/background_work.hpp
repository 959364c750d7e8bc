// SPDX-License-Identifier: Apache-2.0
// What peers wait for while this rank waits for something else: copies to fields that have been freed in the meantime,
// sums and messages that could make progress. Every wait of the rank does this work between its polls.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace halocline::comm {

class background_work {
  public:
    /// step: noexcept, never waits. `polls`: how many polls of a wait that spins there are to each step.
    /// Pre: no wait of this rank is in progress.
    void add(void* object, void (*step)(void* object), std::uint32_t polls) {
        all_.push_back({object, step, polls, polls});
    }
    void remove(const void* object) noexcept {
        std::erase_if(all_, [object](const one& o) { return o.object == object; });
    }
    /// Between two polls of a wait that spins.
    void run() noexcept {
        for (one& o : all_) {
            const std::atomic_ref left(o.left); // two threads of the rank may wait: a step less or more is no harm
            const std::uint32_t now = left.load(std::memory_order_relaxed);
            left.store(now > 1 ? now - 1 : o.polls, std::memory_order_relaxed);
            if (now <= 1) o.step(o.object);
        }
    }
    /// Where calls are few: in a wait that yields or sleeps between its polls, in a test, now and then in calls that don't
    /// wait.
    void run_all() const noexcept {
        for (const one& o : all_) o.step(o.object);
    }

  private:
    struct one {
        void* object;
        void (*step)(void* object);
        std::uint32_t polls, left; ///< left until the next step
    };
    std::vector<one> all_;
};

} // namespace halocline::comm
