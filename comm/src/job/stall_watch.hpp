// SPDX-License-Identifier: Apache-2.0
// Waits that last: for which rank this one waits although that one neither waits itself nor died. That is said once, on
// stderr, after $HALOCLINE_STALL_MS, and so is that it goes on (docs/decisions/0040-unresponsive-ranks.md).
//
// Each rank judges only whom it waits for itself. One whose memory is mapped shows when it last looked around in a wait;
// one of another node is asked through the control plane, which it answers in its waits. Of several ranks that wait for
// the same one the first to write its name into that one's record says it, and tells the other nodes that it did.
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

    /// Seconds that the wait which began at `since` (ticks) has lasted, without times in which this rank did not look around
    /// although it was to: it was stopped itself. Called once a millisecond.
    double waited(std::uint64_t since) noexcept;
    /// In that wait, for `peer` (-1: for nobody in particular).
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
