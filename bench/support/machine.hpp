// SPDX-License-Identifier: Apache-2.0
// The cores that this program may use, and one of them for each rank.
#pragma once

#include <sched.h>

namespace halocline::bench {

/// As they were when this was called first: before any thread was bound.
inline const cpu_set_t& usable_set() {
    static const cpu_set_t all = [] {
        cpu_set_t set;
        CPU_ZERO(&set);
        if (sched_getaffinity(0, sizeof set, &set) != 0) CPU_SET(0, &set);
        return set;
    }();
    return all;
}
inline int usable_cores() { return CPU_COUNT(&usable_set()); }

/// Binds the calling thread, number `n` of `threads`, to the usable core of its number. False, and no binding, where
/// they outnumber cores.
inline bool pin(int n, int threads) {
    const cpu_set_t& all = usable_set();
    if (CPU_COUNT(&all) < threads) return false;
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int core = 0, i = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, &all) && i++ == n) CPU_SET(core, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

} // namespace halocline::bench
