// SPDX-License-Identifier: Apache-2.0
// The end of main() of every test program.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

namespace halocline_test {

/// What a skipped test makes of a program in which none failed. `of_some_runs`: of one that is run on any number of
/// ranks, over any transport or with any device, and leaves out what is promised of others.
enum class skips { told, of_some_runs };

/// Does the whole name match the pattern, in which `*` is any text and `?` any letter?
inline bool matches(std::string_view pattern, std::string_view name) {
    if (pattern.empty()) return name.empty();
    if (pattern[0] == '*')
        return matches(pattern.substr(1), name) || (!name.empty() && matches(pattern, name.substr(1)));
    return !name.empty() && (pattern[0] == '?' || pattern[0] == name[0]) && matches(pattern.substr(1), name.substr(1));
}

/// The first pattern of a filter "a*:b*-c*" that no test's name matches; empty: there is none. Not those behind the
/// dash: programs share filters, and one may have nothing to leave out.
inline std::string idle_pattern(std::string_view filter) {
    const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
    const auto is_idle = [&](std::string_view pattern) {
        for (int i = 0; i < tests.total_test_suite_count(); ++i) {
            const testing::TestSuite& suite = *tests.GetTestSuite(i);
            for (int k = 0; k < suite.total_test_count(); ++k)
                if (matches(pattern, std::string(suite.name()) + "." + suite.GetTestInfo(k)->name())) return false;
        }
        return true;
    };
    std::string_view rest = filter.substr(0, filter.find('-'));
    while (!rest.empty()) {
        const std::string_view pattern = rest.substr(0, rest.find(':'));
        rest.remove_prefix(std::min(pattern.size() + 1, rest.size()));
        if (!pattern.empty() && is_idle(pattern)) return std::string(pattern);
    }
    return {};
}

/// Runs the tests that the filter selects. Returns the exit code: 77 (ctest: Skipped) if a test was skipped, none failed
/// and such skips are told. A filter that selects no test is a failure, and one with a part that selects none, so that a
/// renamed test doesn't pass by not running.
inline int run_tests(skips s = skips::told) {
    const std::string idle = idle_pattern(testing::GTEST_FLAG(filter));
    if (!idle.empty()) {
        std::fprintf(stderr, "no test matches %s of --gtest_filter=%s\n", idle.c_str(),
                     testing::GTEST_FLAG(filter).c_str());
        return 1;
    }
    const int failed = RUN_ALL_TESTS();
    const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
    if (tests.test_to_run_count() == 0 && !testing::GTEST_FLAG(list_tests)) {
        std::fprintf(stderr, "no test matches --gtest_filter=%s\n", testing::GTEST_FLAG(filter).c_str());
        return 1;
    }
    return failed == 0 && s == skips::told && tests.skipped_test_count() > 0 ? 77 : failed;
}

} // namespace halocline_test
