// SPDX-License-Identifier: Apache-2.0
// Sums that ranks call in different orders: all ranks are told which, long before the deadline.
#include <halocline/base/error.hpp>
#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/job.hpp>
#include <halocline_test/refusal.hpp>

#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

namespace {

using namespace halocline::comm;
using halocline_test::refusal;

/// The error of each rank. They call one sum, then another; where calls_second_first(rank) is true, the other way round.
template <class First>
std::vector<std::string> told(int ranks, int group, std::size_t values, First&& calls_second_first) {
    std::vector<std::string> texts(static_cast<std::size_t>(ranks));
    run_threads(ranks, [&](const job& j) {
        global_sum one(j, 8, {}, group), two(j, 8, {}, group);
        std::vector<double> ones(8, 1.0), own(values, 1.0);
        for (int k = 0; k < 3; ++k) one.sum_or_throw(ones);
        two.sum_or_throw(own);
        j.barrier(); // so that no rank is still in a sum when the job ends
        const bool crossed = calls_second_first(j.rank());
        texts[j.rank()] = refusal<halocline::error>([&] {
            (crossed ? two : one).sum_or_throw(own);
            (crossed ? one : two).sum_or_throw(own);
        });
    });
    return texts;
}

/// Each text names two ranks, the lower one first. Several pairs may find out at once, so ranks may name different ones.
void expect_crossed(const std::vector<std::string>& texts) {
    const std::regex pair(
        "gave up while this rank waited for .*: rank ([0-9]+) waits for '(?:large )?global sum' "
        "\\(number [0-9]+\\) epoch [0-9]+, which rank ([0-9]+) has not started, and rank "
        "([0-9]+) for '(?:large )?global sum' \\(number [0-9]+\\) epoch [0-9]+, which rank ([0-9]+) has not "
        "started: make the same calls on all ranks, in one order$");
    for (const std::string& text : texts) {
        std::smatch ranks;
        ASSERT_TRUE(std::regex_search(text, ranks, pair)) << text;
        EXPECT_LT(std::stoi(ranks[1]), std::stoi(ranks[2])) << text;
        EXPECT_EQ(ranks[1], ranks[4]) << text;
        EXPECT_EQ(ranks[2], ranks[3]) << text;
    }
}

TEST(CrossedSums, AreToldToAllRanks) {
    for (const int ranks : {2, 3, 7})
        for (const std::size_t values : {std::size_t{1}, std::size_t{8}})
            for (const int odd : {0, ranks - 1})
                expect_crossed(told(ranks, 0, values, [odd](int rank) { return rank == odd; }));
}

TEST(CrossedSums, AreToldBetweenGroupsOfRanks) {
    for (const int group : {2, 4}) expect_crossed(told(8, group, 2, [](int rank) { return rank == 5; }));
    for (const int group : {1, 2, 4}) // each group is consistent
        expect_crossed(told(8, group, 2, [](int rank) { return rank >= 4; }));
}

TEST(CrossedSums, OneThatIsSplitIsToldToo) {
    std::vector<std::string> texts(2);
    run_threads(2, [&](const job& j) {
        global_sum one(j), two(j);
        double value = 1;
        texts[j.rank()] = refusal<halocline::error>([&] {
            global_sum& first = j.rank() == 0 ? one : two;
            first.start({&value, 1});
            if (const status s = first.finish({&value, 1}); s != status::ok) j.fail(s, first.pending());
        });
    });
    expect_crossed(texts);
}

} // namespace
