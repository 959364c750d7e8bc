// SPDX-License-Identifier: Apache-2.0
#include "support/flag_probe.hpp"

#include "support/machine.hpp"
#include "support/rounds.hpp"

#include <halocline/comm/clock.hpp>

namespace halocline::bench {

int spins_of(const comm::job& j) {
    static const int cores = usable_cores(); // asked once: a rank that is pinned later has one
    return j.ranks() <= cores ? 2000 : 50;
}

flag_probe::flag_probe(const comm::job& j) : job_(j), area_(j, 4096), spins_(spins_of(j)) {}

double flag_probe::operator()(double seconds) {
    job_.barrier();
    return slowest(job_, {bounce(seconds)})[0];
}

double flag_probe::bounce(double seconds) {
    const int partner = job_.rank() ^ 1;
    if (partner >= job_.ranks()) return 0;
    // The even rank decides when to stop: the last flag has the top bit set.
    constexpr std::uint64_t stop = std::uint64_t{1} << 63;
    std::atomic<std::uint64_t>& mine = flag(job_.rank());
    std::atomic<std::uint64_t>& theirs = flag(partner);
    const std::uint64_t begin = comm::ticks();
    std::uint64_t trips = 0, now = begin;
    if (job_.rank() % 2 == 0) {
        while (comm::seconds(now - begin) < seconds) {
            for (int i = 0; i < 16; ++i, ++trips) {
                theirs.store(++epoch_, std::memory_order_release);
                await(mine, epoch_, spins_);
            }
            now = comm::ticks();
        }
        theirs.store(++epoch_ | stop, std::memory_order_release);
    } else {
        for (;; ++trips) {
            await(mine, epoch_ + 1, spins_);
            const bool over = (mine.load(std::memory_order_acquire) & stop) != 0;
            ++epoch_;
            if (over) break;
            theirs.store(epoch_, std::memory_order_release);
        }
        mine.store(epoch_, std::memory_order_relaxed); // the even rank is waiting no more
        now = comm::ticks();
    }
    return trips == 0 ? 0 : 1e9 * comm::seconds(now - begin) / (2 * static_cast<double>(trips));
}

} // namespace halocline::bench
