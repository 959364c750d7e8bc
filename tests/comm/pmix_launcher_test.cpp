// SPDX-License-Identifier: Apache-2.0
// A launcher with a PMIx server that is killed while its ranks run: `PROGRAM mpirun -n 2 …` starts itself as the ranks.
#include "job/process_look.hpp"

#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/job.hpp>

#include <gtest/gtest.h>
#include <halocline_test/run_tests.hpp>
#include <halocline_test/send_signal.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace halocline::comm;

std::vector<std::string> launch_line;

/// Announces itself and works until it is killed.
int be_rank() {
    job_options options;
    options.transports = {"shm"};
    const job j = job::from_environment(options);
    global_sum sum(j, 1);
    std::printf("pid %d\n", static_cast<int>(getpid()));
    std::fflush(stdout);
    for (double v[1]{1};;) sum.sum_or_throw(v);
}

bool runs(pid_t p) {
    const char state = look_at(std::to_string(p)).state;
    return state != '?' && state != 'Z';
}

TEST(PmixLauncher, ThatIsKilledLeavesNobody) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    const pid_t launcher = fork();
    if (launcher == 0) {
        dup2(ends[1], STDOUT_FILENO);
        std::vector<char*> line;
        for (std::string& word : launch_line) line.push_back(word.data());
        line.push_back(nullptr);
        execvp(line[0], line.data());
        _exit(127);
    }
    ::close(ends[1]);
    std::FILE* said = fdopen(ends[0], "r");
    std::vector<int> ranks;
    for (int pid = 0; ranks.size() < 2 && std::fscanf(said, " pid %d", &pid) == 1;) ranks.push_back(pid);
    ASSERT_EQ(ranks.size(), 2u);

    halocline_test::send_signal(launcher, SIGKILL);
    waitpid(launcher, nullptr, 0);

    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (const int rank : ranks) {
        while (runs(rank) && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        EXPECT_FALSE(runs(rank));
        if (runs(rank)) halocline_test::send_signal(rank, SIGKILL);
    }
    std::fclose(said);
}

} // namespace

int main(int argc, char** argv) {
    if (argc == 2 && std::string(argv[1]) == "rank") return be_rank();
    testing::InitGoogleTest(&argc, argv);
    launch_line.assign(argv + 1, argv + argc);
    launch_line.push_back(std::filesystem::read_symlink("/proc/self/exe"));
    launch_line.emplace_back("rank");
    return halocline_test::run_tests();
}
