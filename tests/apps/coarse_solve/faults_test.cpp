// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <halocline_test/send_signal.hpp>

#include <chrono>
#include <csignal>
#include <regex>
#include <thread>
#include <vector>

#include <unistd.h>

namespace coarse_solve_test {
namespace {

/// The processes of all ranks of a job that halocline-run started.
std::vector<int> pids_of(const std::string& marker) {
    std::vector<int> pids;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const std::string name = entry.path().filename();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        std::string line = halocline_test::read_text(entry.path() / "cmdline");
        for (auto& c : line)
            if (c == '\0') c = ' ';
        if (line.find(marker) != std::string::npos && line.find("/coarse_solve ") != std::string::npos &&
            line.find("halocline-run") == std::string::npos && !line.starts_with("timeout") && !line.starts_with("sh "))
            pids.push_back(std::stoi(name));
    }
    return pids;
}

TEST(Faults, KilledRankEndsTheJobAndSurvivorsNameIt) {
    run_command(on_ranks(1, "--max-iterations 1")); // makes the demo configuration
    for (int round = 0; round < 3; ++round) {
        const std::string marker = "1" + std::to_string(::getpid()) + std::to_string(round); // a seed to find it by
        command_result run;
        // Never converges within the iterations, so the job is busy when the signal arrives.
        std::thread job([&] {
            run = run_command(on_ranks(2, "--tol 1e-200 --max-iterations 100000000 --setup 0 --seed " + marker));
        });
        std::vector<int> pids;
        for (int i = 0; i < 400 && pids.size() < 2; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            pids = pids_of("--seed " + marker);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(300 * round)); // during set-up, during the solve
        EXPECT_EQ(pids.size(), 2u);
        const auto killed = std::chrono::steady_clock::now();
        if (pids.size() == 2) halocline_test::send_signal(pids[static_cast<std::size_t>(round) % 2], SIGKILL);
        job.join();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - killed;

        EXPECT_EQ(run.exit_code, 3) << run.out << run.err;
        EXPECT_LT(took.count(), 10); // on a busy machine; waits end on their own after 60 s
        if (pids.size() == 2) {
            const std::string dead = std::to_string(pids[static_cast<std::size_t>(round) % 2]);
            const std::string survivor = std::to_string(pids[static_cast<std::size_t>(round + 1) % 2]);
            // The survivor's own words, not the launcher's.
            const std::regex report("rank [01] [(]pid " + survivor + "[)]: rank [01] [(]pid " + dead +
                                    " on [^ )]+[)] died( of signal 9)? while this rank ");
            EXPECT_TRUE(std::regex_search(run.err, report)) << run.err;
        }
        EXPECT_TRUE(pids_of("--seed " + marker).empty()) << "orphans";
    }
}

} // namespace
} // namespace coarse_solve_test
