// SPDX-License-Identifier: Apache-2.0
// Input that would be read, or written, out of range, and that nothing can be made of: refused by all ranks, in the same
// words. Ranks are threads.
#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/connection.hpp>
#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/messenger.hpp>
#include <halocline_test/contains.hpp>
#include <halocline_test/refusal.hpp>

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

namespace {

using namespace halocline::comm;
using halocline_test::contains;

/// The error of two ranks, equal on both.
std::string refused(const std::function<void(const job&)>& body, const job_options& options = {.transports = {"shm"}}) {
    std::array<std::string, 2> texts;
    run_threads(
        2, [&](const job& j) { texts[j.rank()] = halocline_test::refusal([&] { body(j); }); }, options);
    EXPECT_EQ(texts[0], texts[1]);
    return texts[0];
}

TEST(Refusals, OfChannels) {
    const auto with = [](const std::vector<channel_request>& requests_of_rank_1) {
        return refused([&](const job& j) {
            const std::vector<channel_request> none;
            channel_set(j, j.rank() == 1 ? requests_of_rank_1 : none, {.name = "faces", .shape = ""});
        });
    };

    EXPECT_EQ(with({{2, 7, 7, 8, 8, "low"}}), "'faces': peer 2 of 'low' is not a rank of this job (0 to 1)");
    EXPECT_EQ(with({{-1, 7, 7, 8, 8, "low"}}), "'faces': peer -1 of 'low' is not a rank of this job (0 to 1)");
    EXPECT_EQ(with({{1, 7, 7, 8, 8, "low"}, {1, 7, 8, 8, 8, "high"}}),
              "'faces': rank 1 uses key 7 for 'low' and for 'high'; each channel needs a key of its own");
}

TEST(Refusals, OfGlobalSums) {
    const auto with = [](int values, int group) {
        return refused([&](const job& j) { global_sum(j, values, {}, group); });
    };
    constexpr int most = 1024;

    EXPECT_EQ(with(1, 1), "accepted");
    EXPECT_EQ(with(most, 0), "accepted");
    for (const int values : {0, -1, most + 1})
        EXPECT_EQ(with(values, 0),
                  "a global sum of up to " + std::to_string(values) + " values; 1 to 1024 are possible");
    EXPECT_EQ(with(8, -1), "a global sum in groups of -1 ranks; 1 or more, or 0 for the usual");
}

TEST(Refusals, OfMessengers) {
    const auto with = [](const messenger_options& options) {
        return refused([&](const job& j) { messenger(j, options); });
    };

    EXPECT_EQ(with({.immediate_bytes = 1024, .frame_bytes = 2048}), "accepted");
    EXPECT_EQ(with({.immediate_bytes = 1025}),
              "'messages': immediate messages of 1025 bytes; at most 1024 are possible");
    EXPECT_EQ(with({.frame_bytes = 2047}),
              "'messages': frames of 2047 bytes; at least 2048 are needed, or 0: by transport and ranks");
}

TEST(Refusals, OfWhatMockCannotCarry) {
    const job_options mock{.transports = {"mock"}};

    EXPECT_EQ(refused([](const job& j) { messenger m(j); }, mock),
              "'messages': messages don't go over 'mock'; choose among shm, verbs, ofi, mpi");
    const std::string text = halocline_test::refusal([&] {
        run_threads(
            2, [](const job& j) { connection c(j, 1 - j.rank(), {.name = "edge"}); }, mock);
    });
    EXPECT_TRUE(contains(text, ": windows don't go over 'mock'; choose among shm, verbs, ofi, mpi")) << text;
}

TEST(Refusals, OfNoTransportAtAll) {
    for (const std::string& text :
         {halocline_test::refusal([] { job::single({.transports = {}}); }),
          halocline_test::refusal([] { run_threads(2, [](const job&) {}, {.transports = {}}); })})
        EXPECT_TRUE(text.starts_with("no transport was named; known are self, shm")) << text;
}

} // namespace
