// SPDX-License-Identifier: Apache-2.0
// Processors: what the kernel numbers and schedules threads on, a core or one of a core's hardware threads. A list says
// which of them a process may use; the topology in /sys determines the order in which ranks are given them.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace halocline::comm {

/// Processors that the calling thread may use, however many, in order_of_use(); empty if the kernel does not say.
/// Cost: reads four small files per processor.
[[nodiscard]] std::vector<int> usable_processors();

/// Sorts processors: first one of each core, then the cores' second hardware threads, and so on; within each of these
/// turns, neighbours in the list share a third-level cache, a memory node or a package as far as possible. Without a
/// topology in `system`, by number.
[[nodiscard]] std::vector<int> order_of_use(std::vector<int> processors,
                                            const std::string& system = "/sys/devices/system/cpu");

/// One processor for each rank: from usable[rank], given to no other rank, and early in the list if possible. -1 for
/// ranks that have to share, because they belong to a group that may use fewer processors than it has ranks. The order
/// of the lists does not affect who has to share.
/// Cost: with n lists of m, at most n² m steps, usually n.
[[nodiscard]] std::vector<int> one_processor_each(const std::vector<std::vector<int>>& usable);

/// From now on the calling thread runs only on these. False if the kernel refuses; then nothing has changed.
bool bind_to(std::span<const int> processors);

/// "0-3,8".  Pre: no duplicates.
[[nodiscard]] std::string to_text(std::vector<int> processors);

} // namespace halocline::comm
