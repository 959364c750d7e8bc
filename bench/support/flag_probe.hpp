// SPDX-License-Identifier: Apache-2.0
// How fast do a flag and a buffer travel between two cores at the moment? Shared machines have several modes, seconds
// apart; timings from different modes must not be compared. The buffer determines the mode, because flags may be
// equally fast in both.
#pragma once

#include <halocline/comm/detail/pause.hpp>
#include <halocline_test/shared_area.hpp>

#include <atomic>
#include <cstdint>
#include <sched.h>
#include <vector>

namespace halocline::bench {

/// Waits until `flag` has reached `epoch`; after `spins` polls the core is yielded between polls. Each poll includes a
/// pause: without it a flag takes 10 ns longer if cores are near, 30 if they are far apart.
inline void await(const std::atomic<std::uint64_t>& flag, std::uint64_t epoch, int spins) {
    for (int polls = 0; flag.load(std::memory_order_acquire) < epoch; ++polls) {
        comm::pause();
        if (polls > spins) sched_yield();
    }
}
/// The processors that the ranks of this host may use together, whether each has its own or all the same. Collective.
std::vector<int> processors_of(const comm::job& j);
/// The processors to which pin_ranks() binds each rank, by rank; empty if two have the same number. Collective.
std::vector<int> own_processors_of(const comm::job& j);
/// Binds each rank to a processor of its own, if possible on a core of its own. False if there are too few: then each
/// is bound to one that as many ranks share as any other, or to none if there is no such number. Peers bind their ranks
/// alike (support/mpi_peer.hpp). Collective.
bool pin_ranks(const comm::job& j);
/// How often a rank of this job polls before it yields: few times if ranks outnumber processors. Collective.
int spins_of(const comm::job& j);

/// The result of a probe.
struct machine_pace {
    double flag_ns = 0;     ///< one way
    double transfer_ns = 0; ///< round trip of a cache line that one core fills and the other reads, repeatedly
    double core_ns = 0;     ///< a fixed piece of work on the slowest core (support/core_probe.hpp)
    [[nodiscard]] bool fast() const { return transfer_ns < 8; }
};

/// Bounces flags, and 32 KiB, between ranks 2i and 2i + 1.
class flag_probe {
  public:
    explicit flag_probe(const comm::job& j);
    /// Collective: result of the slowest pair, zeros on a single rank; of the slowest core.
    machine_pace operator()(double seconds);
    /// More ranks than cores: flags wait for the scheduler.
    [[nodiscard]] bool crowded() const { return spins_ < 2000; }
    /// A longer time means that something else is running on these cores.
    static constexpr double disturbed_ns = 500;

  private:
    static constexpr std::size_t lines = 512, lines_at = 4096;
    // Not at the same offset in its page as a neighbour's: a load would wait for the store before it.
    std::atomic<std::uint64_t>& flag(int rank) {
        return *reinterpret_cast<std::atomic<std::uint64_t>*>(area_.of(rank) + 192 * (rank % 16));
    }
    double bounce(double seconds);
    double transfer();

    comm::job job_;
    halocline_test::shared_area area_;
    int spins_;
    std::uint64_t epoch_ = 0;
};

} // namespace halocline::bench
