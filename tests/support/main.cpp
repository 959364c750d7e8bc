// SPDX-License-Identifier: Apache-2.0
// main() of the tests. Exit code 77 (ctest: Skipped) only if a test was skipped and none failed; a filter that selects
// no test is a failure, so that a renamed test doesn't pass by not running.
#include <gtest/gtest.h>

#include <cstdio>

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    const int failed = RUN_ALL_TESTS();
    const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
    if (tests.test_to_run_count() == 0 && !testing::GTEST_FLAG(list_tests)) {
        std::fprintf(stderr, "no test matches --gtest_filter=%s\n", testing::GTEST_FLAG(filter).c_str());
        return 1;
    }
    return failed == 0 && tests.skipped_test_count() > 0 ? 77 : failed;
}
