// SPDX-License-Identifier: Apache-2.0
// Quotas of processor time. Linux can limit a control group (a container, a batch job) to a number of busy processors,
// averaged over a period of usually 0.1 s, however many its processes may run on; a group that has used up its quota
// stands still until the next period.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace halocline::comm {

/// The quota of one control group.
struct processor_quota {
    std::string group;     ///< identical for all processes of one kernel that this quota limits
    double processors = 0; ///< how many it may keep busy, e.g. 1.5
};

/// All quotas of the calling process: that of its own control group, and those of enclosing ones as far as they are
/// visible (not those outside a container). Reads cpu.max of control groups v2, cpu.cfs_quota_us and cpu.cfs_period_us
/// of v1; a missing file or one that can't be parsed means no quota. `process` holds the files "cgroup" and
/// "mountinfo".
[[nodiscard]] std::vector<processor_quota> processor_quotas(const std::string& process = "/proc/self");

/// Threads of a rank according to OMP_NUM_THREADS, without nested teams; 1 if it is unset.
[[nodiscard]] int threads_per_rank();

/// The processors that a rank may use, and the quotas on their time.
struct processor_share {
    std::vector<int> processors;
    std::vector<processor_quota> quotas;
    int threads = 1;
};

/// A quota that is too small for the ranks below it.
struct exceeded_quota {
    double processors = 0; ///< that the quota lets them keep busy
    int wanted = 0;        ///< that they can keep busy: one per thread, among those that they may run on
    int ranks = 0;
};

/// For each rank the tightest quota (least time per wanted processor) that the ranks under it can exceed together.
/// Ranks are under the same quota if its group has the same name for them.  Pre: all run on one kernel.
[[nodiscard]] std::vector<std::optional<exceeded_quota>> exceeded_quotas(std::span<const processor_share> ranks);

/// "1 processor", "1.5 processors".
[[nodiscard]] std::string in_processors(double number);

} // namespace halocline::comm
