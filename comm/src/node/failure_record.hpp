// SPDX-License-Identifier: Apache-2.0
// The first object in each slab: what ended the job, written once by the rank that noticed it first; what the slab's
// owner waits for, and from whom; and the rank that reports it as unresponsive. Changes raise layout_number
// (job/layout_number.hpp).
#pragma once

#include <halocline/comm/status.hpp>

#include <atomic>
#include <cstdint>

namespace halocline::comm {

/// What ended a job.
struct job_end {
    status why = status::ok;
    std::int32_t culprit = -1;
    std::int32_t pid = 0;
    char host[64]{};
    char text[960]{}; ///< how it died, why it gave up, or how long it was waited for, in milliseconds
};

struct failure_record {
    /// 0: the job goes on. 2 n - 1: writer n, from 1, is at work. 2 n: what it wrote is there, for good. If a writer
    /// does not finish, the next one writes elsewhere: the first may have been killed, or only delayed.
    std::atomic<std::uint32_t> state{0};
    static constexpr std::uint32_t places = 4; ///< so the fourth writer after one that is delayed would disturb it
    job_end ends[places]{};                    ///< of writers, by turns

    /// nullptr: the job goes on, or its end is still being written.
    [[nodiscard]] const job_end* end() const noexcept {
        const std::uint32_t s = state.load(std::memory_order_acquire);
        return s == 0 || s % 2 == 1 ? nullptr : &ends[s / 2 % places];
    }
    /// end(), once a writer that is at work has finished; waits at most 0.1 s for it.
    [[nodiscard]] const job_end* end_soon() const noexcept;
    /// Claims the record and writes the end of the job. `before`: the state that it replaces: 0, or the odd state of a
    /// writer that did not finish. False: another writer changed the state first.
    bool write(std::uint32_t before, const job_end& what) noexcept;
    /// Writes the end of the job, unless it is there, and returns the one that is. The first writer wins, if it finishes
    /// within 0.1 s.
    const job_end& settle(const job_end& what) noexcept;

    static constexpr std::int32_t nobody = -2; ///< -1: no rank in particular
    std::atomic<std::int32_t> awaited{nobody}; ///< the rank awaited by a wait that has lasted some time
    std::atomic<std::uint64_t> awake{0};       ///< when it last checked in, in ticks; updated while it waits

    // Which rank reports unresponsive ranks on stderr (stall_watch): written by ranks of this node; nobody: none does.
    std::atomic<std::int32_t> reported_by{nobody}; ///< the rank that reports the slab's owner
    std::atomic<std::int32_t> reports_far{nobody}; ///< the rank that reports one elsewhere; in the node's first slab

    // Waits that cross (crossed_waits.hpp); 0: none. Cleared in the order unbegun, awaited when the wait ends.
    std::atomic<std::uint64_t> awaited_epoch{0}; ///< of which channel set the owner awaits which epoch
    std::atomic<std::uint64_t> unbegun_epoch{0}; ///< one that a peer awaits and that the owner has not begun
};

} // namespace halocline::comm
