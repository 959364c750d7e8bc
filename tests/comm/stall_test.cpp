// SPDX-License-Identifier: Apache-2.0
// Ranks that are stopped, or do something else, for shorter and longer than $HALOCLINE_STALL_MS: a rank that waits for
// them reports it once, and the job continues.

#include <gtest/gtest.h>
#include <halocline_test/awake_clock.hpp>
#include <halocline_test/killed_job.hpp>
#include <halocline_test/send_signal.hpp>

#include <atomic>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace halocline_test;
using clock_type = std::chrono::steady_clock;

constexpr int limit_seconds = 100; // of jobs that take 4 s

/// A job of three that adds numbers, with some of its ranks stopped for a while, and ends half a second after that.
struct stopped_job {
    running_job job;
    std::vector<std::string> told, gone_on; ///< lines on stderr
    clock_type::duration until_told{}, stopped{};
    int code;

    stopped_job(const std::string& mode, const std::vector<int>& who, clock_type::duration time)
        : job(start_job(3, mode, 3, limit_seconds)) {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        awake_clock stopped_for;
        const clock_type::time_point begin = clock_type::now();
        for (const int r : who) send_signal(job.ranks[r], SIGSTOP);
        std::atomic<bool> ended{false};
        std::thread resumes([&] {
            stopped_for.sleep_until(time);
            for (const int r : who) kill(job.ranks[r], SIGCONT); // unless the launcher has ended it
            stopped = clock_type::now() - begin;
            std::this_thread::sleep_for(std::chrono::milliseconds(500));
            if (!ended) kill(job.ranks[0], SIGUSR1);
        });
        for (std::size_t read = job.said.size(); job.line(); read = job.said.size()) {
            const std::string line = job.said.substr(read);
            if (!line.starts_with("halocline: ")) continue;
            if (line.find("is unresponsive, but alive") == std::string::npos) {
                gone_on.push_back(line);
            } else {
                told.push_back(line);
                until_told = stopped_for.passed();
            }
        }
        ended = true;
        resumes.join();
        code = job.wait();
    }
};

class Stopped : public testing::TestWithParam<const char*> {
  protected:
    std::string mode = "stalls-" + std::string(GetParam());
    bool is_near = mode.find("nodes") == std::string::npos; ///< can its process be inspected?
};

TEST_P(Stopped, ForHalfTheTimeIsNotTold) {
    for (int round = 0; round < 3; ++round) {
        const stopped_job seen(mode, {1}, stall / 2);

        EXPECT_EQ(seen.code, 0) << seen.job.said;
        if (seen.stopped >= stall && round < 2) continue; // this program was itself stopped
        EXPECT_TRUE(seen.told.empty()) << seen.job.said;
        EXPECT_TRUE(seen.gone_on.empty()) << seen.job.said;
        return;
    }
}

TEST_P(Stopped, ForThatTimeMayBeToldAndGoesOn) {
    const stopped_job seen(mode, {2}, stall);

    EXPECT_EQ(seen.code, 0) << seen.job.said;
    EXPECT_LE(seen.told.size(), 1u) << seen.job.said;
    EXPECT_EQ(seen.gone_on.size(), seen.told.size()) << seen.job.said;
}

TEST_P(Stopped, ForLongIsToldOnceAndGoesOn) {
    for (const int victim : {0, 1}) {
        const stopped_job seen(mode, {victim}, 5 * stall);

        EXPECT_EQ(seen.code, 0) << seen.job.said;
        ASSERT_EQ(seen.told.size(), 1u) << seen.job.said;
        EXPECT_TRUE(seen.told[0].starts_with("halocline: " + seen.job.name_of(victim))) << seen.told[0];
        EXPECT_EQ(seen.told[0].find("its process is stopped") != std::string::npos, is_near) << seen.told[0];
        EXPECT_LT(seen.until_told, 5 * stall) << "when it went on; promised: " << stall.count() << " + 500 ms";
        EXPECT_EQ(seen.job.said.find("died"), std::string::npos) << seen.job.said;
        ASSERT_EQ(seen.gone_on.size(), 1u) << seen.job.said;
        EXPECT_TRUE(seen.gone_on[0].starts_with("halocline: " + seen.job.name_of(victim))) << seen.gone_on[0];
        std::printf("told after %.2f s\n", std::chrono::duration<double>(seen.until_told).count());
    }
}

TEST_P(Stopped, AllTogetherForLongerThanTheDeadlineIsNobodysFault) {
    const stopped_job seen("stalls-short-" + std::string(GetParam()), {0, 1, 2}, 2 * short_deadline);

    EXPECT_EQ(seen.code, 0) << seen.job.said;
    EXPECT_TRUE(seen.told.empty()) << seen.job.said;
}

TEST_P(Stopped, ForLongerThanTheDeadlineEndsTheJob) {
    const stopped_job seen("stalls-short-" + std::string(GetParam()), {1}, 2 * short_deadline);

    EXPECT_EQ(seen.code, 3) << seen.job.said;
    EXPECT_EQ(seen.told.size(), 1u) << seen.job.said;
    EXPECT_TRUE(seen.gone_on.empty()) << seen.job.said;
    EXPECT_GE(seen.job.failures.size(), 2u) << seen.job.said; // the stopped rank may be ended before it reports
    for (const std::string& f : seen.job.failures)
        EXPECT_TRUE(f.find("nothing came from " + seen.job.name_of(1)) != std::string::npos ||
                    f.find("another rank waited for this one for") != std::string::npos)
            << f;
}

INSTANTIATE_TEST_SUITE_P(OverShm, Stopped, testing::Values("add", "add-twice"));
#ifdef HALOCLINE_WITH_OFI
INSTANTIATE_TEST_SUITE_P(OverOfi, Stopped, testing::Values("ofi-add", "ofi-nodes-add"));
#endif

TEST(Stalled, ByComputingIsToldAsWhatItIs) {
    running_job job(3, "stalls-add-and-compute", 3, limit_seconds);
    const int code = job.wait();

    EXPECT_EQ(code, 0) << job.said;
    const std::string name = "halocline: " + job.name_of(1);
    const std::size_t at = job.said.find(name);
    ASSERT_NE(at, std::string::npos) << job.said;
    const std::string line = job.said.substr(at, job.said.find('\n', at) - at);
    EXPECT_NE(line.find("is unresponsive, but alive"), std::string::npos) << line;
    EXPECT_NE(line.find("its process runs, or is ready to: it computes"), std::string::npos) << line;
    EXPECT_EQ(job.said.find("died"), std::string::npos) << job.said;
    EXPECT_EQ(job.said.find("stopped"), std::string::npos) << job.said;
}

} // namespace

int main(int argc, char** argv) { return run_tests_or_be_rank(argc, argv); }
