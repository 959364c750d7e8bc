// SPDX-License-Identifier: Apache-2.0
// Transport "mock": completes at once, and is used only if it is named, alone.
#include <halocline/comm/channel_set.hpp>
#include <halocline_test/refusal.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace {
using namespace halocline;
using namespace halocline::comm;

TEST(Mock, CompletesAtOnceWithZeros) {
    run_threads(2,
                [](const job& j) {
                    const std::vector<channel_request> requests{{1 - j.rank(), 7, 7, 100, 100, "there"},
                                                                {j.rank(), 8, 8, 8, 8, "here"}};
                    channel_set set(j, requests, {.name = "mock", .shape = ""});
                    for (std::uint64_t epoch = 1; epoch <= 3 && j.rank() == 0; ++epoch) { // rank 1 sends nothing
                        set.for_each([&](auto& c) {
                            std::memset(c.target(epoch), 0x5a, requests[c.index()].send_bytes);
                            c.send(epoch, 0);
                        });

                        EXPECT_TRUE(set.test(epoch));
                        EXPECT_EQ(set.wait(epoch), status::ok);
                        set.for_each([&](auto& c) {
                            for (std::size_t i = 0; i < requests[c.index()].receive_bytes; ++i)
                                EXPECT_EQ(c.received(epoch)[i], std::byte{});
                        });
                    }
                    EXPECT_EQ(set.waits_yielded(), 0U);
                    ASSERT_EQ(set.counts(3).size(), 1U);
                    EXPECT_EQ(set.counts(3)[0].transport, "mock");
                    EXPECT_EQ(set.counts(3)[0].messages, 6U);
                },
                {.transports = {"mock"}});
}

TEST(Mock, ServesTheOwnRankOfASingleJob) {
    EXPECT_EQ(job::single({.transports = {"mock"}}).transport(), "mock");
    EXPECT_EQ(job::single().transport(), "self");
}

TEST(Mock, IsNeverAFallback) {
    const std::vector<std::string> mixed{"shm", "mock"};
    const std::string text =
        "transport 'mock' moves nothing between ranks: it is for benches and tests, and named alone";
    EXPECT_EQ(halocline_test::refusal([&] { run_threads(2, [](const job&) {}, {.transports = mixed}); }), text);
    EXPECT_EQ(halocline_test::refusal([&] { job::single({.transports = mixed}); }), text);
}

} // namespace
