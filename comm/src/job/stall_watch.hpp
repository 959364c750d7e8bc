// SPDX-License-Identifier: Apache-2.0
// Says on stderr, once, after $HALOCLINE_STALL_MS, which rank holds up a wait: one that is alive and does not wait
// itself; and again when that rank goes on (docs/decisions/0040-unresponsive-ranks.md).
//
// A rank judges only whom it waits for. A rank with mapped memory shows there when it last looked around in a wait; one
// of another node is asked through the control plane, and answers in its waits. Of several waiters the first to enter
// its name in the record speaks, and tells the other nodes.
#pragma once

#include "control/control_plane.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace halocline::comm {

class job_core;

class stall_watch {
  public:
    /// $HALOCLINE_STALL_MS, by default 10 s; 0: nothing is said.  Err: input_error.
    static std::chrono::milliseconds time_of_environment();
    stall_watch(const job_core& core, int ranks);

    /// Seconds that the wait which began at `since` (ticks) has lasted, without times in which this rank did not look
    /// around although it was to: it was stopped itself. Called once a millisecond.
    double waited(std::uint64_t since) noexcept;
    /// Looks whether `peer` (-1: nobody in particular) holds up the wait, which has lasted so many seconds.
    void look(int peer, double waited) noexcept;
    /// The wait has ended.
    void over() noexcept;
    /// A rank of another node said this. Any thread.
    void heard(int from, far_word word, int about) noexcept;

  private:
    static constexpr int nobody = -1;

    [[nodiscard]] bool is_silent(int peer, double waited) noexcept;
    [[nodiscard]] bool near(int r) const noexcept;
    [[nodiscard]] int stopped_one() const;
    /// Is it left to this rank to say it of that one?
    [[nodiscard]] bool claim(int culprit) noexcept;
    [[nodiscard]] std::atomic<std::int32_t>& claims_of(int culprit) const noexcept;
    void tell(int culprit, double waited);
    [[nodiscard]] std::string condition(int culprit) const;

    const job_core& core_;
    const double stall_;  // seconds; 0: never
    double far_patience_; // how much longer a rank of another node may take to answer

    // Of the wait under way.
    std::uint64_t since_ = 0, last_look_ = 0, absent_ = 0; // ticks
    double looked_at_all_ = 0;                             // seconds waited, when processes were last looked at
    int told_ = nobody;                                    // of whom it was said, by this rank or another
    bool teller_ = false;

    std::vector<std::atomic<std::uint64_t>> answered_; // by rank: when, in ticks
    std::atomic<int> told_elsewhere_{nobody};          // of whom another node said it
};

} // namespace halocline::comm
