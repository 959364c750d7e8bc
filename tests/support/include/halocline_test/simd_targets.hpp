// SPDX-License-Identifier: Apache-2.0
// Runs a test body on each SIMD target that this machine has, not only on the best one.
#pragma once

#include <hwy/highway.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace halocline_test {

/// Does the system say that the processor has all these instructions?
inline bool processor_has(const std::vector<std::string>& flags) {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);) {
        if (!line.starts_with("flags")) continue;
        std::istringstream words(line);
        std::size_t found = 0;
        for (std::string word; words >> word;) found += std::ranges::count(flags, word);
        return found == flags.size();
    }
    return false;
}

/// Pre: `body` uses no kernel that was chosen outside it: kernels are chosen when tables are made.
template <class Body>
void on_each_simd_target(Body&& body) {
    const std::int64_t available = hwy::SupportedTargets();
    std::int64_t seen = 0;
    for (const std::int64_t target :
         {std::int64_t{HWY_AVX3}, std::int64_t{HWY_AVX2}, std::int64_t{HWY_SSE4}, std::int64_t{HWY_STATIC_TARGET}}) {
        if ((available & target) == 0 && target != HWY_STATIC_TARGET) continue;
        SCOPED_TRACE(hwy::TargetName(target));
        hwy::SetSupportedTargetsForTest(target);
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
        body();
        seen |= target;
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    EXPECT_TRUE((seen & HWY_AVX2) != 0 || !processor_has({"avx2", "bmi1", "bmi2", "fma", "f16c"}));
    EXPECT_TRUE((seen & HWY_AVX3) != 0 || !processor_has({"avx512f", "avx512vl", "avx512dq", "avx512bw"}));
}

} // namespace halocline_test
