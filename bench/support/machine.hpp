// SPDX-License-Identifier: Apache-2.0
// The cores that this program may use, and one of them for each rank.
#pragma once

#include <sched.h>

namespace halocline::bench {

inline int usable_cores() {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/// Binds the caller to the usable core number `rank`. False, and no binding, where ranks outnumber cores.
inline bool pin(int rank, int ranks) {
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) != 0 || CPU_COUNT(&all) < ranks) return false;
    for (int core = 0, n = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, &all) && n++ == rank) CPU_SET(core, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

} // namespace halocline::bench
