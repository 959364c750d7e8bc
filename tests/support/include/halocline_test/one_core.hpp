// SPDX-License-Identifier: Apache-2.0
// Ranks that are threads, on one core: what they wait for happens only when they yield it.
#pragma once

#include <halocline/comm/processors.hpp>

#include <gtest/gtest.h>

#include <sched.h>

namespace halocline_test {

/// Binds the calling thread to the lowest processor that the kernel allows, the same for ranks that a launcher has bound
/// to different ones.
inline void bind_to_first_core() {
    int processor = 0;
    while (processor < CPU_SETSIZE && !halocline::comm::bind_to({&processor, 1})) ++processor;
    ASSERT_LT(processor, CPU_SETSIZE);
}

} // namespace halocline_test
