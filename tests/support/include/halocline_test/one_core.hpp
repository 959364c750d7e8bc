// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads, on one core: what they wait for comes only when they give it away.
#pragma once

#include <gtest/gtest.h>

#include <sched.h>

namespace halocline_test {

/// The calling thread has the first core that it may use, and no other.
inline void bind_to_first_core() {
    cpu_set_t usable, one;
    CPU_ZERO(&one);
    ASSERT_EQ(sched_getaffinity(0, sizeof usable, &usable), 0);
    int core = 0;
    while (!CPU_ISSET(core, &usable)) ++core;
    CPU_SET(core, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

} // namespace halocline_test
