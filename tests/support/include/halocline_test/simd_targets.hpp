// SPDX-License-Identifier: Apache-2.0
// Runs a test body on each SIMD target that this machine has, not only on the best one.
#pragma once

#include <hwy/highway.h>

#include <gtest/gtest.h>

namespace halocline_test {

/// Pre: `body` uses no kernel that was chosen outside it: kernels are chosen when tables are made.
template <class Body>
void on_each_simd_target(Body&& body) {
    const std::int64_t available = hwy::SupportedTargets();
    int targets = 0;
    for (const std::int64_t target :
         {std::int64_t{HWY_AVX3}, std::int64_t{HWY_AVX2}, std::int64_t{HWY_SSE4}, std::int64_t{HWY_STATIC_TARGET}}) {
        if ((available & target) == 0 && target != HWY_STATIC_TARGET) continue;
        SCOPED_TRACE(hwy::TargetName(target));
        hwy::SetSupportedTargetsForTest(target);
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
        body();
        ++targets;
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    EXPECT_GE(targets, 1);
}

} // namespace halocline_test
