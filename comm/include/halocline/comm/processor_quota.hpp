// SPDX-License-Identifier: Apache-2.0
// Quotas of processor time. Linux lets a control group (a container, a batch job) keep only so many processors busy, on
// average over a period of usually 0.1 s, however many its processes may run on; who has used it up stands still until
// the next period.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace halocline::comm {

/// What one control group may use.
struct processor_quota {
    std::string group;     ///< the same text for all processes of one kernel that it limits
    double processors = 0; ///< that it may keep busy: 1.5, say
};

/// All quotas of the calling process: of its own control group, and of those around it as far as they can be seen (not
/// those outside of a container). Reads cpu.max of control groups v2, cpu.cfs_quota_us and cpu.cfs_period_us of v1;
/// what is not there, or not understood, is no quota. `process` has the files "cgroup" and "mountinfo".
[[nodiscard]] std::vector<processor_quota> processor_quotas(const std::string& process = "/proc/self");

/// Threads of a rank: what the environment's OMP_NUM_THREADS says, without nested teams; 1 if it says nothing.
[[nodiscard]] int threads_per_rank();

/// The processors that a rank may use, and the quotas on their time.
struct processor_share {
    std::vector<int> processors;
    std::vector<processor_quota> quotas;
    int threads = 1;
};

/// A quota that is too small for the ranks below it.
struct exceeded_quota {
    double processors = 0; ///< processors that the quota lets them keep busy
    int wanted = 0;        ///< processors that they can keep busy: one for each thread, of those that they may run on
    int ranks = 0;
};

/// For each rank the tightest quota (least time per wanted processor) that the ranks under it can exceed together.
/// Ranks are under one quota if its group has the same name for them.  Pre: all run on one kernel.
[[nodiscard]] std::vector<std::optional<exceeded_quota>> exceeded_quotas(std::span<const processor_share> ranks);

/// "1 processor", "1.5 processors".
[[nodiscard]] std::string in_processors(double number);

} // namespace halocline::comm
