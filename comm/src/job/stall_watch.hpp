// SPDX-License-Identifier: Apache-2.0
// Reports on stderr, once, after $HALOCLINE_STALL_MS, which rank holds up a wait: one that is alive and is not waiting
// itself; and again when that rank continues (docs/decisions/0040-unresponsive-ranks.md).
//
// A rank judges only the rank that it waits for. If that rank's memory is mapped, it shows when it last checked in
// during a wait; a rank of another node is asked through the control plane, and answers during its waits. Of several
// waiters, the first to enter its name in the record reports, and informs the other nodes. Several threads of a rank may
// be in waits: what is known of a wait belongs to its thread.
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
    /// $HALOCLINE_STALL_MS, by default 10 s; 0: no reports.  Err: input_error.
    static std::chrono::milliseconds time_of_environment();
    stall_watch(const job_core& core, int ranks);

    /// Seconds that the calling thread's wait, which began at `since` (ticks), has lasted, excluding times in which this
    /// rank did not check although it should have: it was stopped itself. Called once a millisecond.
    double waited(std::uint64_t since) noexcept;
    /// Checks whether `peer` (-1: nobody in particular) holds up the wait, which has lasted `waited` seconds.
    void look(int peer, double waited) noexcept;
    /// The calling thread's wait has ended.
    void over() noexcept;
    /// A rank of another node sent this. Any thread.
    void heard(int from, far_word word, int about) noexcept;

  private:
    static constexpr int nobody = -1;
    /// What is known of a thread's wait; of its last one until the next is looked at.
    struct wait_in_progress {
        const stall_watch* watch = nullptr;
        std::uint64_t since = 0, last_look = 0, absent = 0; // ticks
        double looked_at_all = 0;                           // value of `waited` when all processes were last checked
        int told = nobody;                                  // the rank reported, by this rank or another
        bool teller = false;
    };
    /// The calling thread's.
    [[nodiscard]] wait_in_progress& own() const noexcept;

    void end(wait_in_progress& w) noexcept;
    [[nodiscard]] bool is_silent(int peer, double waited, const wait_in_progress& w) noexcept;
    [[nodiscard]] bool near(int r) const noexcept;
    [[nodiscard]] int stopped_one() const;
    /// Is it up to this rank to report that one?
    [[nodiscard]] bool claim(int culprit) noexcept;
    [[nodiscard]] std::atomic<std::int32_t>& claims_of(int culprit) const noexcept;
    void tell(int culprit, double waited);
    [[nodiscard]] std::string condition(int culprit) const;

    const job_core& core_;
    const double stall_;  // seconds; 0: never
    double far_patience_; // how much longer a rank of another node may take to answer

    std::vector<std::atomic<std::uint64_t>> answered_; // by rank: when it answered, in ticks
    std::atomic<int> told_elsewhere_{nobody};          // the rank that another node reported
};

} // namespace halocline::comm
