// SPDX-License-Identifier: Apache-2.0
// How a rank interprets a launcher's answers: this test plays the launcher (launch.hpp).
#include "control/wire.hpp"
#include "job/bootstrap.hpp"
#include "job/layout_number.hpp"

#include <halocline/comm/detail/launch.hpp>
#include <halocline/comm/job.hpp>

#include <gtest/gtest.h>
#include <halocline_test/environment_variable.hpp>
#include <halocline_test/few_descriptors.hpp>
#include <halocline_test/refusal.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <sys/resource.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace halocline;
using namespace halocline::comm;
using halocline_test::refusal;

/// Joins as rank 0 of 2; the launcher answers rank 0's part with answer(part), or only when rank 0 asks who is
/// missing.  Returns the error.
std::string joined(const std::function<std::string(const std::string& part)>& answer, bool when_asked = false) {
    int hub[2], lifeline[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, hub) + pipe(lifeline), 0);
    setenv(launch::rank_variable, "0", 1);
    setenv(launch::ranks_variable, "2", 1);
    setenv(launch::socket_variable, std::to_string(hub[0]).c_str(), 1);
    setenv(launch::lifelines_variable, (std::to_string(lifeline[1]) + "," + std::to_string(lifeline[0])).c_str(), 1);
    std::thread launcher([&] {
        std::uint64_t length = 0;
        EXPECT_EQ(recv(hub[1], &length, sizeof length, MSG_WAITALL), static_cast<ssize_t>(sizeof length));
        std::string part(length, '\0');
        EXPECT_EQ(recv(hub[1], part.data(), length, MSG_WAITALL), static_cast<ssize_t>(length));
        if (when_asked) {
            EXPECT_EQ(recv(hub[1], &length, sizeof length, MSG_WAITALL), static_cast<ssize_t>(sizeof length));
            EXPECT_EQ(length, launch::asks_who);
        }
        const std::string reply = wire_writer().text(answer(part)).take();
        EXPECT_EQ(send(hub[1], reply.data(), reply.size(), 0), static_cast<ssize_t>(reply.size()));
    });
    std::string text = "joined";
    try {
        const job j = job::from_environment();
    } catch (const std::exception& e) {
        text = e.what();
    }
    launcher.join();
    for (const int fd : {hub[0], hub[1], lifeline[0], lifeline[1]}) ::close(fd);
    return text;
}

constexpr std::size_t number_at = 4; // in a card, after its mark

TEST(Launch, AnotherLayoutOfTheSameVersionIsRefusedWithBothNumbersAndTheRemedy) {
    const std::string mine = std::to_string(layout_number), next = std::to_string(layout_number + 1);
    const auto refused = [&](const std::string& theirs) {
        return "ranks disagree on the number of their layouts: rank 0 has '" + mine + "', rank 1 has '" + theirs +
               "'; link the programs of all ranks with halocline of the same sources";
    };
    const auto with = [&](const std::function<std::string(std::string part)>& other) {
        return joined([&](const std::string& part) {
            return wire_writer().number(launch::gathered).text(part).text(other(part)).take();
        });
    };

    EXPECT_EQ(with([](std::string part) {
                  const std::uint32_t number = layout_number + 1;
                  std::memcpy(part.data() + number_at, &number, sizeof number);
                  return part.substr(0, 40); // what follows is not read
              }),
              refused(next));
    const std::string none = "none, as builds before these numbers";
    EXPECT_EQ(with([](const std::string& part) { return part.substr(number_at + sizeof layout_number); }),
              refused(none)); // like cards of older builds
    EXPECT_EQ(with([](const std::string&) { return std::string(); }), refused(none));
}

TEST(Launch, AnotherVersionIsRefusedWithBothAndTheRemedyWithinASecond) {
    std::array<std::chrono::steady_clock::duration, 3> took{}; // one of them may have to wait for its processor
    for (auto& t : took) {
        const auto begin = std::chrono::steady_clock::now();
        std::string mine;
        const std::string text = joined([&](const std::string& part) {
            mine = wire_reader(part.substr(number_at + sizeof layout_number)).text();
            const std::string other =
                part.substr(0, number_at + sizeof layout_number) + wire_writer().text("0.0.9").text("laid out").take();
            return wire_writer().number(launch::gathered).text(part).text(other).take();
        });
        t = std::chrono::steady_clock::now() - begin;

        EXPECT_EQ(text, "ranks disagree on the version of halocline: rank 0 has '" + mine +
                            "', rank 1 has '0.0.9'; link the programs of all ranks with one of them");
    }
    std::ranges::sort(took);
    EXPECT_LT(took[1], std::chrono::seconds(1));
}

TEST(Launch, OtherOptionsAreRefusedWithBoth) {
    const std::string text = joined([&](const std::string& part) {
        std::string other = part;
        other.replace(other.find("deadline 60000 ms"), 17, "deadline 90000 ms"); // as long as before
        return wire_writer().number(launch::gathered).text(part).text(other).take();
    });

    EXPECT_NE(text.find("ranks disagree on the options of the job: rank 0 has "), std::string::npos) << text;
    for (const char* value : {"deadline 60000 ms", "deadline 90000 ms", "; give every rank the same"})
        EXPECT_NE(text.find(value), std::string::npos) << text;
}

TEST(Launch, AnotherModeOfMpiIsRefusedWithBoth) {
    const std::string text = joined([&](const std::string& part) {
        std::string other = part;
        other.replace(other.find("mpi two-sided"), 13, "mpi one-sided");
        return wire_writer().number(launch::gathered).text(part).text(other).take();
    });

    EXPECT_NE(text.find("ranks disagree on the options of the job: rank 0 has "), std::string::npos) << text;
    for (const char* value : {"mpi two-sided", "mpi one-sided"}) EXPECT_NE(text.find(value), std::string::npos) << text;
}

TEST(Launch, AnotherPathIsRefusedWithBoth) {
    const std::string text = joined([&](const std::string& part) {
        std::string other = part;
        other.replace(other.find("path automatic"), 14, "path unheardof");
        return wire_writer().number(launch::gathered).text(part).text(other).take();
    });

    EXPECT_NE(text.find("ranks disagree on the options of the job: rank 0 has "), std::string::npos) << text;
    for (const char* value : {"path automatic", "path unheardof"})
        EXPECT_NE(text.find(value), std::string::npos) << text;
}

TEST(Launch, ADeadRankOfAnotherHostIsNamedWithIt) {
    const std::string text = joined([](const std::string&) {
        wire_writer w;
        return w.number(launch::died)
            .number<std::int32_t>(1)
            .number<std::int32_t>(4711)
            .text("nodeB")
            .text("died of signal 9")
            .take();
    });

    EXPECT_NE(text.find("rank 1 (pid 4711 on nodeB) died of signal 9 while this rank waited for every rank to join"),
              std::string::npos)
        << text;
}

TEST(Launch, MissingRanksAreNamedByTheLauncherThatIsAsked) {
    const halocline_test::environment_variable deadline("HALOCLINE_FAULTS_DEADLINE_MS", "300");
    const std::string text = joined(
        [](const std::string&) {
            wire_writer w;
            return w.number(launch::missing)
                .number<std::int32_t>(1)
                .number<std::int32_t>(0)
                .text("nodeB")
                .text("rank 1 on nodeB")
                .take();
        },
        true);

    EXPECT_NE(text.find("not every rank came within 300 ms, missing: rank 1 on nodeB, while this rank waited for "
                        "every rank to join the job"),
              std::string::npos)
        << text;
}

/// The ends of the other ranks' lifelines are inherited, so there may be more of them than the limit allows to open.
TEST(Launch, FewerDescriptorsThanRanksToWatchIsRefusedAtOnceWithTheRemedy) {
    if (halocline_test::checks_take_descriptors) GTEST_SKIP() << halocline_test::why_descriptors_are_needed;
    int hub[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, hub), 0);
    std::vector<int> open{hub[0], hub[1]};
    constexpr int ranks = 12;
    std::string lifelines;
    for (int r = 0; r < ranks; ++r) {
        int ends[2];
        ASSERT_EQ(pipe(ends), 0);
        open.insert(open.end(), ends, ends + 2);
        lifelines += (r > 0 ? "," : "") + std::to_string(ends[r == 0 ? 1 : 0]);
    }
    setenv(launch::rank_variable, "0", 1);
    setenv(launch::ranks_variable, std::to_string(ranks).c_str(), 1);
    setenv(launch::socket_variable, std::to_string(hub[0]).c_str(), 1);
    setenv(launch::lifelines_variable, lifelines.c_str(), 1);
    const auto start = local_bootstrap({});
    ASSERT_TRUE(start);
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    const rlimit few{ranks - 1, files.rlim_max};

    setrlimit(RLIMIT_NOFILE, &few);
    const std::string text = refusal([&] { (void)start->gather("card"); });
    setrlimit(RLIMIT_NOFILE, &files);

    EXPECT_TRUE(text.starts_with("rank 0 (pid ")) << text;
    EXPECT_NE(text.find("12 pipes and sockets at a time"), std::string::npos) << text;
    EXPECT_NE(text.find("raise 'ulimit -n'"), std::string::npos) << text;
    for (const int fd : open) ::close(fd);
}

TEST(Launch, TasksOfSrunWithoutAWayToTheOthersAreToldOnce) {
    const halocline_test::environment_variable no_launcher(launch::rank_variable, {}), no_pmix("PMIX_RANK", {}),
        no_open_mpi("OMPI_COMM_WORLD_SIZE", {}), no_pmi("PMI_SIZE", {});
    const auto said = [](const char* tasks, const char* task) {
        const halocline_test::environment_variable all("SLURM_STEP_NUM_TASKS", tasks), own("SLURM_PROCID", task);
        testing::internal::CaptureStderr();
        EXPECT_EQ(job::from_environment().ranks(), 1);
        return testing::internal::GetCapturedStderr();
    };

    EXPECT_EQ(said("4", "0").find("halocline: srun started 4 tasks"), 0u);
    EXPECT_EQ(said("4", "1"), "");
    EXPECT_EQ(said("1", "0"), "");
}

} // namespace
