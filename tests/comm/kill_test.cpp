// SPDX-License-Identifier: Apache-2.0
// What happens when ranks die: real kills of real processes.

#include <gtest/gtest.h>
#include <halocline_test/killed_job.hpp>
#include <halocline_test/send_signal.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace halocline_test;
using clock_type = std::chrono::steady_clock;

class Killed : public testing::TestWithParam<const char*> {};

TEST_P(Killed, SurvivorsNameTheDeadWithinASecondAndTheJobEndsWithThree) {
    if (lacks_device(GetParam())) GTEST_SKIP() << "no RDMA device; see comm.verbs_vm";
    expect_survivors_name_the_dead(GetParam(), -1, [](const std::string& f) {
        EXPECT_NE(f.find("while this rank waited for"), std::string::npos) << f;
    });
}

INSTANTIATE_TEST_SUITE_P(During, Killed,
                         testing::Values("setup", "barriers", "sums", "sum", "messages", "any-message",
                                         "beside-large-messages", "puts", "window", "window-elsewhere"));
#ifdef HALOCLINE_WITH_OFI
INSTANTIATE_TEST_SUITE_P(OverOfi, Killed,
                         testing::Values("ofi-setup", "ofi-sums", "ofi-sum", "ofi-messages", "ofi-any-message",
                                         "ofi-large-messages", "ofi-puts", "ofi-window", "ofi-large-window",
                                         "ofi-window-elsewhere", "ofi-pending-window"));
#ifdef HALOCLINE_WITH_NET
INSTANTIATE_TEST_SUITE_P(OverNet, Killed,
                         testing::Values("ofi-net-sums", "ofi-net-large-messages", "ofi-net-nodes-sum",
                                         "ofi-net-large-window", "ofi-net-pending-window"));
#endif
INSTANTIATE_TEST_SUITE_P(OverNodes, Killed, testing::Values("ofi-nodes-barriers", "ofi-nodes-sum"));
#endif
#ifdef HALOCLINE_WITH_VERBS
INSTANTIATE_TEST_SUITE_P(OverVerbs, Killed,
                         testing::Values("verbs-sums", "verbs-sum", "verbs-messages", "verbs-puts",
                                         "verbs-large-window"));
#endif

/// Nobody is killed: rank 0 waits for rank 1, which never sends.
TEST(Deadline, IsNotExtendedByMessagesOfOthers) {
    const auto begin = clock_type::now();
    running_job job_under_test = start_job(3, "short-beside-large-messages", 3, 15);

    EXPECT_EQ(job_under_test.wait(), 3) << job_under_test.said;
    EXPECT_LT(clock_type::now() - begin, under_load) << job_under_test.said;
    EXPECT_NE(job_under_test.said.find("nothing came from rank 1"), std::string::npos) << job_under_test.said;
}

#ifdef HALOCLINE_WITH_OFI
/// Nobody is killed: each rank waits for the token of a receiver that never begins its step.
TEST(Deadline, EndsTheWaitForAnArrayThatIsNeverFree) {
    running_job job_under_test = start_job(3, "short-ofi-pending-window", 3, 15);

    EXPECT_EQ(job_under_test.wait(), 3) << job_under_test.said;
    EXPECT_EQ(job_under_test.failures.size(), 3u) << job_under_test.said;
    for (const std::string& f : job_under_test.failures) {
        EXPECT_TRUE(f.find("nothing came from rank ") != std::string::npos ||
                    f.find("another rank waited for this one for") != std::string::npos)
            << f;
        EXPECT_NE(f.find("while this rank waited for send window 0 of connection"), std::string::npos) << f;
    }
}
#endif

/// Each of two survivors names that rank, says how it died, and what it was waiting for itself.
void expect_two_reports(const running_job& job_under_test, int dead, const std::string& how = "died") {
    ASSERT_EQ(job_under_test.failures.size(), 2u) << job_under_test.said;
    for (const std::string& f : job_under_test.failures) {
        EXPECT_TRUE(f.starts_with("failure of " + std::to_string(dead) + ": ")) << f;
        EXPECT_NE(f.find(job_under_test.name_of(dead)), std::string::npos) << f;
        EXPECT_NE(f.find(") " + how + " while this rank waited for "), std::string::npos) << f;
    }
}

/// One of three ranks is killed in that mode.
struct end_of_three {
    running_job job_under_test;
    std::string dead, survivor;
    int code;
    explicit end_of_three(const std::string& mode) : job_under_test(3, mode, 3) {
        dead = job_under_test.name_of(1);
        survivor = job_under_test.name_of(2);
        send_signal(job_under_test.ranks[1], SIGKILL);
        code = job_under_test.wait();
    }
};

TEST(Kill, IsReportedForSurvivorsThatCompute) {
    const end_of_three seen("computing");

    EXPECT_EQ(seen.code, 3) << seen.job_under_test.said;
    ASSERT_EQ(seen.job_under_test.last_words.size(), 2u) << seen.job_under_test.said;
    EXPECT_NE(seen.job_under_test.said.find(seen.survivor), std::string::npos) << seen.job_under_test.said;
    for (const std::string& words : seen.job_under_test.last_words) {
        EXPECT_NE(words.find(seen.dead), std::string::npos) << words;
        EXPECT_NE(words.find("died while this rank computed"), std::string::npos) << words;
    }
}

TEST(Kill, IsReportedForSurvivorsThatDoNotGetThroughTheirDestructors) {
    const end_of_three seen("stuck");

    EXPECT_EQ(seen.code, 3) << seen.job_under_test.said;
    ASSERT_EQ(seen.job_under_test.last_words.size(), 2u) << seen.job_under_test.said;
    for (const std::string& words : seen.job_under_test.last_words) {
        EXPECT_NE(words.find(seen.dead), std::string::npos) << words;
        EXPECT_NE(words.find("died while this rank waited for every rank at a barrier"), std::string::npos) << words;
    }
}

TEST(Kill, IsReportedForSurvivorsThatCloseTheirJobs) {
    running_job job_under_test(3, "closing", 3);
    const auto have_said_so = [&said = job_under_test.said] { // possibly before the last rank announced itself
        const std::size_t first = said.find("closing\n");
        return first != std::string::npos && said.find("closing\n", first + 1) != std::string::npos;
    };
    while (!have_said_so() && job_under_test.line()) {
    }
    send_signal(job_under_test.ranks[1], SIGKILL);
    const int code = job_under_test.wait();

    EXPECT_EQ(code, 3) << job_under_test.said;
    ASSERT_EQ(job_under_test.last_words.size(), 2u) << job_under_test.said;
    for (const std::string& words : job_under_test.last_words)
        EXPECT_NE(words.find(job_under_test.name_of(1)), std::string::npos) << words;
}

TEST(Kill, LeavesTimeToWhoHasNoticed) {
    const end_of_three seen("busy");

    EXPECT_EQ(seen.code, 3) << seen.job_under_test.said;
    expect_two_reports(seen.job_under_test, 1);
    EXPECT_TRUE(seen.job_under_test.last_words.empty()) << seen.job_under_test.said;
}

/// A pause of the whole job, as of a machine that is suspended, takes nothing from the time that survivors have.
TEST(Kill, IsReportedBySurvivorsAlsoAfterAPauseOfTheWholeJob) {
    running_job job_under_test(3, "paused", 3);
    const pid_t survivors[]{job_under_test.ranks[0], job_under_test.ranks[2]};
    send_signal(job_under_test.ranks[1], SIGKILL);
    std::this_thread::sleep_for(paused_grace / 3); // watchdogs and launcher have seen it

    for (const pid_t p : {job_under_test.launcher, survivors[0], survivors[1]}) send_signal(p, SIGSTOP);
    for (const pid_t p : survivors) send_signal(p, SIGUSR1); // they will look soon
    std::this_thread::sleep_for(paused_grace + std::chrono::seconds(1));
    for (const pid_t p : {job_under_test.launcher, survivors[0], survivors[1]}) send_signal(p, SIGCONT);

    EXPECT_EQ(job_under_test.wait(), 3);
    expect_two_reports(job_under_test, 1);
    EXPECT_TRUE(job_under_test.last_words.empty()) << job_under_test.said;
}

TEST(Kill, BeforeJoiningIsReportedToThoseWhoWait) {
    running_job job_under_test(3, "join", 3);

    send_signal(job_under_test.ranks[1], SIGKILL);
    const int code = job_under_test.wait();

    EXPECT_EQ(code, 3);
    expect_two_reports(job_under_test, 1, "died of signal 9");
}

TEST(Kill, BeforeJoiningIsReportedWhileTheLauncherIsStopped) {
    running_job job_under_test(3, "join", 3);
    std::this_thread::sleep_for(std::chrono::milliseconds(100)); // the others wait
    send_signal(job_under_test.launcher, SIGSTOP);

    const auto begin = clock_type::now();
    send_signal(job_under_test.ranks[1], SIGKILL);
    while (job_under_test.failures.size() < 2 && job_under_test.line()) {
    }

    EXPECT_LT(clock_type::now() - begin, under_load);
    expect_two_reports(job_under_test, 1, "ended"); // the launcher knows more
    send_signal(job_under_test.launcher, SIGCONT);
    EXPECT_EQ(job_under_test.wait(), 3);
}

TEST(Kill, BeforeARankIsWatchedIsReportedToThoseWhoConnect) {
    running_job job_under_test(3, "unwatched", 1);

    const int code = job_under_test.wait();

    if (code == 77) GTEST_SKIP() << "system calls can't be filtered here";
    EXPECT_EQ(code, 3);
    expect_two_reports(job_under_test, 2);
}

TEST(Kill, IsReportedWhileTheLauncherIsStopped) {
    running_job job_under_test(3, "sum", 3);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    send_signal(job_under_test.launcher, SIGSTOP);

    const auto begin = clock_type::now();
    send_signal(job_under_test.ranks[2], SIGKILL);
    while (job_under_test.failures.size() < 2 && job_under_test.line()) {
    }

    EXPECT_LT(clock_type::now() - begin, under_load);
    expect_two_reports(job_under_test, 2);
    send_signal(job_under_test.launcher, SIGCONT);
    EXPECT_EQ(job_under_test.wait(), 3);
}

class ChildThatLivesOn : public testing::TestWithParam<const char*> {};

TEST_P(ChildThatLivesOn, DoesNotHideTheDeathOfItsParent) {
    const end_of_three seen(GetParam());

    EXPECT_EQ(seen.code, 3);
    expect_two_reports(seen.job_under_test, 1);
}

INSTANTIATE_TEST_SUITE_P(During, ChildThatLivesOn, testing::Values("child"));
#ifdef HALOCLINE_WITH_OFI
INSTANTIATE_TEST_SUITE_P(OverOfi, ChildThatLivesOn, testing::Values("ofi-nodes-child")); // no pidfd shows its end
#endif

class WithoutDescriptors : public testing::TestWithParam<const char*> {};

TEST_P(WithoutDescriptors, ALivingRankIsNotCalledDead) {
    running_job job_under_test(3, GetParam(), 3);

    EXPECT_EQ(job_under_test.wait(), 3) << job_under_test.said;
    ASSERT_EQ(job_under_test.failures.size(), 3u) << job_under_test.said;
    for (const std::string& f : job_under_test.failures) {
        EXPECT_NE(f.find(job_under_test.name_of(1)), std::string::npos) << f;
        EXPECT_NE(f.find(" gave up"), std::string::npos) << f;
        EXPECT_NE(f.find("closed the job's descriptors"), std::string::npos) << f;
    }
}

INSTANTIATE_TEST_SUITE_P(During, WithoutDescriptors, testing::Values("closes"));
#ifdef HALOCLINE_WITH_OFI
INSTANTIATE_TEST_SUITE_P(OverOfi, WithoutDescriptors, testing::Values("ofi-closes"));
#endif

class Forked : public testing::TestWithParam<const char*> {};

TEST_P(Forked, ChildThatRunsDestructorsLeavesChannelsToItsParent) {
    if (lacks_device(GetParam())) GTEST_SKIP() << "no RDMA device; see comm.verbs_vm";
    running_job job_under_test(3, GetParam(), 3);

    EXPECT_EQ(job_under_test.wait(), 0) << job_under_test.said;
}

INSTANTIATE_TEST_SUITE_P(During, Forked, testing::Values("forks", "child-uses-job"));
#ifdef HALOCLINE_WITH_OFI
INSTANTIATE_TEST_SUITE_P(OverOfi, Forked, testing::Values("ofi-forks", "ofi-shm-forks", "ofi-nodes-forks"));
#ifdef HALOCLINE_WITH_NET
INSTANTIATE_TEST_SUITE_P(OverNet, Forked, testing::Values("ofi-net-forks"));
#endif
#endif
#ifdef HALOCLINE_WITH_VERBS
INSTANTIATE_TEST_SUITE_P(OverVerbs, Forked, testing::Values("verbs-forks"));
#endif

class LeftOpen : public testing::TestWithParam<const char*> {};

TEST_P(LeftOpen, JobOfAProgramThatEndsWellHasEndedWell) {
    running_job job_under_test(8, GetParam(), 8);

    EXPECT_EQ(job_under_test.wait(), 0) << job_under_test.said;
    EXPECT_TRUE(job_under_test.last_words.empty()) << job_under_test.said;
}

INSTANTIATE_TEST_SUITE_P(During, LeftOpen, testing::Values("leaves"));
#ifdef HALOCLINE_WITH_OFI
INSTANTIATE_TEST_SUITE_P(OverOfi, LeftOpen, testing::Values("ofi-leaves", "ofi-nodes-leaves"));
#endif

TEST(Kill, OfTheLauncherLeavesNobody) {
    running_job job_under_test(3, "sum", 3);

    send_signal(job_under_test.launcher, SIGKILL);
    job_under_test.wait();

    const auto end = clock_type::now() + under_load;
    while (job_under_test.anybody_alive() && clock_type::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_FALSE(job_under_test.anybody_alive());
}

} // namespace

int main(int argc, char** argv) { return run_tests_or_be_rank(argc, argv, skips::of_some_runs); }
