// SPDX-License-Identifier: Apache-2.0
// Does the thread sanitizer see through slabs and channels? A reader that looks into its slot before arrived() must be
// reported, one that waits must not. Built only with -fsanitize=thread; this program is both the test and, with
// "early" or "waiting", the ranks.
#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/clock.hpp>
#include <halocline_test/run_tests.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>
#include <sys/wait.h>

namespace {

using namespace halocline::comm;

std::string self;

/// Rank 0 sends one message; rank 1 reads it after the wait, or too early.
int be_ranks(bool early) {
    run_threads(2, [&](const job& j) {
        const std::array request{channel_request{1 - j.rank(), 0, 0, 64, 64, "face"}};
        channel_set set(j, request, {"pair", ""});
        set.for_each([&](auto& c) {
            *c.target(1) = std::byte{static_cast<unsigned char>(1 + j.rank())};
            if (early) (void)*static_cast<const volatile std::byte*>(c.received(1));
            c.send(1, ticks());
        });
        if (const status s = set.wait(1); s != status::ok) j.fail(s, set.pending(1));
        set.for_each([](auto& c) { (void)*static_cast<const volatile std::byte*>(c.received(1)); });
    });
    return 0;
}

struct outcome {
    int code;
    std::string text;
};

outcome run(const std::string& mode) {
    FILE* output = popen(("TSAN_OPTIONS=exitcode=66 '" + self + "' " + mode + " 2>&1").c_str(), "r");
    std::string text;
    for (char part[4096]; std::fgets(part, sizeof part, output) != nullptr;) text += part;
    return {WEXITSTATUS(pclose(output)), text};
}

TEST(ThreadSanitizer, ReportsASlotReadBeforeItsMessageArrived) {
    const outcome o = run("early");
    EXPECT_EQ(o.code, 66) << o.text;
    EXPECT_NE(o.text.find("ThreadSanitizer: data race"), std::string::npos) << o.text;
}

TEST(ThreadSanitizer, ReportsNothingOfAReaderThatWaits) {
    const outcome o = run("waiting");
    EXPECT_EQ(o.code, 0) << o.text;
    EXPECT_EQ(o.text, "");
}

} // namespace

int main(int argc, char** argv) {
    if (argc == 2 && (std::string(argv[1]) == "early" || std::string(argv[1]) == "waiting")) {
        return be_ranks(std::string(argv[1]) == "early");
    }
    testing::InitGoogleTest(&argc, argv);
    self = std::filesystem::read_symlink("/proc/self/exe");
    return halocline_test::run_tests();
}
