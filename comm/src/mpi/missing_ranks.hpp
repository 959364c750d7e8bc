// SPDX-License-Identifier: Apache-2.0
// Which ranks of an MPI's launcher are not in MPI_Init yet. There is no job, and MPI itself is stuck, so this is read
// from /proc: on each host, which processes have the launcher's environment, and which of them have a thread of that
// name. Ranks of other hosts are reported by the ranks there.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace halocline::comm {

/// Name of a thread that a rank has exactly while it waits in MPI_Init: its peers look for it.
inline constexpr const char* joining_thread = "halo-joining";

/// A rank of the launcher, as a peer on its host sees it.
struct seen_rank {
    int rank = 0;
    int pid = 0;
    bool joins = false;  ///< it is in MPI_Init
    char state = '?';    ///< of the process: state_of(), process_look.hpp
    std::string program; ///< what it runs
};

/// The ranks of a launcher that have a process on this host.
struct ranks_of_host {
    std::string host;
    int ranks = 0;                 ///< of the launcher, on all hosts
    int here = 0;                  ///< that it started on this host
    std::vector<seen_rank> seen{}; ///< by rank, once each
};

/// nullopt: no MPI's launcher started this process, or it hides the others from it (containers).
std::optional<ranks_of_host> ranks_on_this_host();

/// "rank 1 (pid 4711 on host, 'sleep', asleep) has not called it": which ranks are missing, as far as this host can
/// see, for a report on stderr.
std::string missing_ranks(const ranks_of_host& host);

} // namespace halocline::comm
