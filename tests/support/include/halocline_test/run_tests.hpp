// SPDX-License-Identifier: Apache-2.0
// The end of main() of every test program.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>

namespace halocline_test {

/// What a skipped test makes of a program in which none failed. `of_some_runs`: of one that is run on any number of
/// ranks, over any transport or with any device, and leaves out what is promised of others.
enum class skips { told, of_some_runs };

/// Runs the tests that the filter selects. Returns the exit code: 77 (ctest: Skipped) if a test was skipped, none failed
/// and such skips are told. A filter that selects no test is a failure, so that a renamed test doesn't pass by not
/// running.
inline int run_tests(skips s = skips::told) {
    const int failed = RUN_ALL_TESTS();
    const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
    if (tests.test_to_run_count() == 0 && !testing::GTEST_FLAG(list_tests)) {
        std::fprintf(stderr, "no test matches --gtest_filter=%s\n", testing::GTEST_FLAG(filter).c_str());
        return 1;
    }
    return failed == 0 && s == skips::told && tests.skipped_test_count() > 0 ? 77 : failed;
}

} // namespace halocline_test
