// SPDX-License-Identifier: Apache-2.0
// Kernels passed as sequential() lose nothing where the compiler would call others for several sites at once. Without
// it g++ 12 counts 5632 of 16384 sites.
#include "histograms.hpp"
#include "small_job.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

using namespace halocline;
using namespace halocline_test;

namespace {

TEST(Sequential, KernelsCountEverySite) {
    if (!__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512vl") ||
        !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq"))
        GTEST_SKIP() << "no processor with AVX-512";
    for (const check_level checks : {check_level::off, check_level::normal})
        run(2, [&](const comm::job& j) {
            const std::vector<std::int64_t> all{0, 32 * 8 * 8 * 4, 0, 0};
            EXPECT_EQ(counted_by_stencil(j, checks), all);
            EXPECT_EQ(counted_by_box_stencil(j, checks), all);
            j.barrier();
        });
}

} // namespace
