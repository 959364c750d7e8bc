// SPDX-License-Identifier: Apache-2.0
// Processors: what the kernel schedules threads on and numbers, a core or one of a core's hardware threads. Which of
// them a process may use is a list; in which order ranks are given them comes from the topology in /sys.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace halocline::comm {

/// Processors that the calling thread may use, whatever their number, in order_of_use(); empty if the kernel does not
/// say.
/// Cost: reads four small files per processor.
[[nodiscard]] std::vector<int> usable_processors();

/// Sorts processors: one of each core first, then their second hardware threads, and so on; among those of one turn
/// neighbours in the list share a third-level cache, a memory node, a package, as far as can be. Without a topology in
/// `system` they are in the order of their numbers.
[[nodiscard]] std::vector<int> order_of_use(std::vector<int> processors,
                                            const std::string& system = "/sys/devices/system/cpu");

/// One processor for each rank: from usable[rank], given to no other rank, and early in the list if possible. -1 for
/// ranks that have to share, because they belong to a group that may use fewer processors than it has ranks. The order
/// of the lists does not change who has to share.
/// Cost: with n lists of m at most n² m steps, usually n.
[[nodiscard]] std::vector<int> one_processor_each(const std::vector<std::vector<int>>& usable);

/// From now on the calling thread runs on these alone. False: the kernel refuses, and nothing has changed.
bool bind_to(std::span<const int> processors);

/// "0-3,8".  Pre: none occurs twice.
[[nodiscard]] std::string to_text(std::vector<int> processors);

} // namespace halocline::comm
