// SPDX-License-Identifier: Apache-2.0
// What a program's main() makes of an exception: lines on stderr that say it once, and an exit code on every rank.
#include <halocline_test/contains.hpp>
#include <halocline_test/run_command.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace {

using namespace halocline_test;

command_result run(const std::string& how, int ranks = 3) {
    return run_command(HALOCLINE_RUN " -n " + std::to_string(ranks) + " -- " HALOCLINE_PROGRAM " '" + how + "'");
}

std::ptrdiff_t lines_with(const std::string& text, const std::string& part) {
    std::ptrdiff_t lines = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++lines;
    return lines;
}

TEST(RunJob, ReturnsWhatTheBodyReturns) {
    const auto seven = run("returns");
    EXPECT_EQ(seven.exit_code, 7);
    EXPECT_EQ(lines_with(seven.err, "halocline-run: rank 1 (pid "), 1) << seven.err;
    EXPECT_TRUE(contains(seven.err, ") ended with exit code 7\n")) << seven.err;
    const auto nothing = run("returns nothing");
    EXPECT_EQ(nothing.exit_code, 0);
    EXPECT_EQ(nothing.err, "");
}

TEST(RunJob, BadInputOfAllRanksIsToldOnce) {
    for (const auto& [how, text] :
         {std::pair{"all throw bad input", "no grid of 3 ranks"}, {"all are told", "a missing file"}}) {
        const auto result = run(how);
        EXPECT_EQ(result.exit_code, 2) << result.err;
        EXPECT_EQ(lines_with(result.err, text), 1) << result.err;
    }
}

TEST(RunJob, CallsThatDontBelongTogetherAreToldOnce) {
    const auto result = run("different calls");
    EXPECT_EQ(result.exit_code, 3) << result.err;
    EXPECT_EQ(lines_with(result.err, "the ranks make different collective calls"), 1) << result.err;
}

TEST(RunJob, BadInputBeforeThereIsAJobIsToldOnce) {
    const auto result =
        run_command("env HALOCLINE_COMM_TRANSPORTS=pigeon " HALOCLINE_RUN " -n 3 -- " HALOCLINE_PROGRAM " returns");
    EXPECT_EQ(result.exit_code, 2) << result.err;
    EXPECT_EQ(lines_with(result.err, "unknown transport 'pigeon'"), 1) << result.err;
}

TEST(RunJob, AnExceptionOfOneRankEndsTheOthers) {
    struct end {
        const char *how, *why;
    };
    for (const end& e :
         {end{"one throws bad input", "not here"}, end{"one throws", "out of luck"},
          end{"one throws a number", "an exception of unknown type"}, end{"one throws out of a sum", "out of luck"},
          end{"one throws bad input out of a sum", "not here"}}) {
        const auto result = run(e.how);
        EXPECT_NE(result.exit_code, 0) << e.how;
        EXPECT_EQ(lines_with(result.err, std::string("error: rank 1: ") + e.why), 1) << e.how << "\n" << result.err;
        for (const char* const waits : {"error: rank 0 (pid ", "error: rank 2 (pid "})
            EXPECT_EQ(lines_with(result.err, waits), 1) << e.how << "\n" << result.err;
        EXPECT_EQ(lines_with(result.err, e.why), 3) << "all know the cause: " << e.how << "\n" << result.err;
        EXPECT_FALSE(contains(result.err, "terminate called")) << result.err;
    }
}

TEST(RunJob, ARankThatDiesIsNamedByTheOthers) {
    const auto result = run("one dies");
    EXPECT_NE(result.exit_code, 0);
    EXPECT_GE(lines_with(result.err, "rank 1"), 2) << result.err;
}

TEST(RunJob, AloneThereIsNoRankToName) {
    const auto result = run_command(HALOCLINE_PROGRAM " 'all throw bad input'");
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_TRUE(contains(result.err, ": error: no grid of 1 ranks\n")) << result.err;
}

} // namespace
