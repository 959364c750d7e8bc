// SPDX-License-Identifier: Apache-2.0
// How a job's end is reported within a node.
#include "job/job_core.hpp"
#include "job/process_look.hpp"

#include <halocline/comm/job.hpp>

#include <halocline_test/refusal.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace halocline::comm;
using halocline_test::refusal;

TEST(EndOfJob, IsToldThoughWhoBeganToTellItWasKilled) {
    run_threads(1, [](const job& j) {
        failure_record& record = j.core().memory->record();
        for (const std::uint32_t writers : {1u, 2u}) { // the second one was killed while it replaced the first
            record.state.store(2 * writers - 1);

            j.core().publish(status::aborted, 0, "a survivor's words");

            EXPECT_EQ(j.core().failed(), status::aborted);
            EXPECT_STREQ(record.end()->text, "a survivor's words");
        }
    });
}

TEST(EndOfJob, ItsFirstWordsStayThoughASlowWriterFinishesAfterThem) {
    run_threads(1, [](const job& j) {
        failure_record& record = j.core().memory->record();
        record.state.store(1); // the slow writer has begun
        j.core().publish(status::peer_died, 0, "in its place");
        const job_end* const end = record.end();

        for (job_end& e : record.ends) // the slow writer goes on
            if (&e != end) e.text[0] = '!';
        std::uint32_t at_work = 1;
        EXPECT_FALSE(record.state.compare_exchange_strong(at_work, 2));
        j.core().publish(status::aborted, 0, "too late");

        EXPECT_EQ(record.end(), end);
        EXPECT_STREQ(end->text, "in its place");
    });
}

/// For example while it frees its memory, its sockets already closed.
TEST(EndOfJob, AProcessThatIsEndedIsToldFromOneThatRuns) {
    const pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    EXPECT_FALSE(look_at(std::to_string(child)).ends);

    kill(child, SIGKILL);
    siginfo_t how{};
    waitid(P_PID, child, &how, WEXITED | WNOWAIT); // so that it is still to be seen
    EXPECT_TRUE(look_at(std::to_string(child)).ends);

    waitpid(child, nullptr, 0);
}

TEST(EndOfJob, ARankThatFailsMeanwhileWaitsForItsWords) {
    std::string text;
    const std::string cause = " gave up while this rank waited for a message: the cause";
    const auto fail = [&](const job& j) {
        failure_record& record = j.core().memory->record();
        record.state.store(1); // a peer is writing
        std::thread peer([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
            job_end words{.why = status::aborted, .culprit = 0};
            std::strcpy(words.text, "the cause");
            record.ends[1] = words;
            record.state.store(2);
        });

        text = refusal<rank_failure>([&] { j.core().raise(status::aborted, "a message"); });

        peer.join();
    };
    for (int round = 0; round < 3 && !text.ends_with(cause); ++round) // the peer may lose its processor for too long
        run_threads(1, fail);
    EXPECT_TRUE(text.ends_with(cause)) << text;
}

} // namespace
