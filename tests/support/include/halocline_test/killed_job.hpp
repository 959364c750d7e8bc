// SPDX-License-Identifier: Apache-2.0
// Jobs whose ranks or launcher are killed. This program is both the tests and, as `PROGRAM rank MODE`, their ranks.
#pragma once

#include <halocline_test/run_tests.hpp>
#include <halocline_test/send_signal.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <random>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace halocline_test {

/// A rank of a job under test: announces itself, then works until it is killed or fails, or as its mode says.
int be_rank(std::string mode);
/// Tells the test the pid of this rank.
inline void announce(int rank) {
    std::printf("pid %d %d\n", rank, static_cast<int>(getpid()));
    std::fflush(stdout);
}
/// Tells the test whose death this rank has noticed, and how. Returns the exit code of such a rank.
inline int report(int culprit, const char* what) {
    std::printf("failure of %d: %s\n", culprit, what);
    std::fflush(stdout);
    return 3;
}

/// halocline-run: the argument of the test program.
inline std::string& launcher_program() {
    static std::string path;
    return path;
}
inline std::string this_program() { return std::filesystem::read_symlink("/proc/self/exe"); }

/// main() of such test programs.
inline int run_tests_or_be_rank(int argc, char** argv, skips s = skips::told) {
    if (argc == 3 && std::string(argv[1]) == "rank") return be_rank(argv[2]);
    testing::InitGoogleTest(&argc, argv);
    launcher_program() = argc > 1 ? argv[1] : "halocline-run";
    return run_tests(s);
}

/// $HALOCLINE_STALL_MS and job_options::deadline for modes that begin with "stalls-", "short-".
constexpr std::chrono::milliseconds stall(600), short_deadline(1500);
/// $HALOCLINE_GRACE_MS for mode "paused": long beside what a busy machine keeps the test from sending its signals.
constexpr std::chrono::milliseconds paused_grace(5000);

/// The promised time; and what a heavily loaded machine may take, still far from the 15 s after which waits end anyway.
constexpr auto promised = std::chrono::seconds(1), under_load = std::chrono::seconds(8);

/// A job of such ranks.
struct running_job {
    pid_t launcher = -1;
    FILE* output = nullptr;
    std::vector<pid_t> ranks;
    std::vector<std::string> failures;
    std::vector<std::string> last_words; ///< from watchdogs, on behalf of ranks that could not report
    std::string said;                    ///< all lines so far

    /// By halocline-run, which ends them after `limit_seconds`, or later over verbs: that device may be in an emulated
    /// machine. Otherwise as below.
    running_job(int n, const std::string& mode, std::size_t announced, int limit_seconds = 15)
        : running_job(n,
                      {launcher_program(), "-n", std::to_string(n), "--timeout",
                       std::to_string(mode.starts_with("verbs-") ? std::max(limit_seconds, 100) : limit_seconds), "--",
                       this_program(), "rank", mode},
                      announced) {}
    /// By this command. Returns when `announced` ranks have announced themselves.
    /// Err: std::runtime_error: they did not announce themselves.
    running_job(int n, const std::vector<std::string>& command, std::size_t announced)
        : ranks(static_cast<std::size_t>(n), -1) {
        std::vector<char*> words;
        for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
        words.push_back(nullptr);
        int pipe_ends[2];
        if (pipe(pipe_ends) != 0) std::abort();
        launcher = fork();
        if (launcher == 0) {
            dup2(pipe_ends[1], STDOUT_FILENO);
            dup2(pipe_ends[1], STDERR_FILENO);
            ::close(pipe_ends[0]);
            ::close(pipe_ends[1]);
            execvp(words[0], words.data());
            _exit(127);
        }
        ::close(pipe_ends[1]);
        output = fdopen(pipe_ends[0], "r");
        const auto seen = [&] { return std::ranges::count_if(ranks, [](pid_t p) { return p > 0; }); };
        while (seen() < static_cast<std::ptrdiff_t>(announced) && line()) {
        }
        if (seen() >= static_cast<std::ptrdiff_t>(announced)) return;
        const int code = wait();
        std::fclose(output);
        throw std::runtime_error("the job did not start: exit code " + std::to_string(code) + "; it said\n" + said);
    }
    ~running_job() { std::fclose(output); }
    running_job(const running_job&) = delete;
    running_job& operator=(const running_job&) = delete;

    /// "rank 1 (pid 4711"
    [[nodiscard]] std::string name_of(int rank) const {
        return "rank " + std::to_string(rank) + " (pid " + std::to_string(ranks[rank]);
    }
    /// Takes in the next line from a rank or the launcher.  False: there will be none.
    bool line() {
        char text[2048];
        if (std::fgets(text, sizeof text, output) == nullptr) return false;
        said += text;
        int rank = -1, pid = -1;
        if (std::sscanf(text, "pid %d %d", &rank, &pid) == 2) ranks.at(static_cast<std::size_t>(rank)) = pid;
        if (std::string(text).starts_with("failure")) failures.emplace_back(text);
        if (std::string(text).starts_with("rank ")) last_words.emplace_back(text);
        return true;
    }
    /// Waits until the job has ended.  Returns its exit code.
    int wait() {
        while (line()) {
        }
        int how = 0;
        waitpid(launcher, &how, 0);
        return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
    }
    [[nodiscard]] bool anybody_alive() const {
        for (const pid_t p : ranks) {
            if (p > 0 && kill(p, 0) == 0) return true;
        }
        return false;
    }
};

/// For modes with a short deadline, which may pass on a busy machine before the ranks have announced themselves.
inline running_job start_job(int n, const std::string& mode, std::size_t announced, int limit_seconds) {
    for (int again = 0; again < 2; ++again) {
        try {
            return running_job(n, mode, announced, limit_seconds);
        } catch (const std::runtime_error&) {
        }
    }
    return running_job(n, mode, announced, limit_seconds);
}

/// Modes that begin with "verbs-" need a device.
inline bool is_over_verbs(const std::string& mode) { return mode.starts_with("verbs-"); }
inline bool lacks_device(const std::string& mode) {
    return is_over_verbs(mode) && !std::filesystem::exists("/sys/class/infiniband");
}

/// Runs five jobs of three and kills rank `victim` of each after 50 ms, or any rank at a random moment if that is -1.
/// Each survivor must name it; check(report) looks for the rest.  Returns the median of the times from the kill to the
/// end of the job.
template <class Check>
std::chrono::steady_clock::duration kill_five_times(const std::string& mode, int victim, std::mt19937& random,
                                                    Check check) {
    std::vector<std::chrono::steady_clock::duration> times;
    for (int round = 0; round < 5; ++round) {
        running_job job(3, mode, 3);
        const int dead = victim < 0 ? static_cast<int>(random() % 3) : victim;
        std::this_thread::sleep_for(std::chrono::microseconds(victim < 0 ? random() % 20'000 : 50'000));

        const auto begin = std::chrono::steady_clock::now();
        send_signal(job.ranks[dead], SIGKILL);
        const int code = job.wait();
        times.push_back(std::chrono::steady_clock::now() - begin);

        EXPECT_LT(times.back(), under_load);
        EXPECT_EQ(code, 3) << job.said;
        EXPECT_EQ(job.failures.size(), 2u) << job.said;
        for (const std::string& f : job.failures) {
            EXPECT_NE(f.find(job.name_of(dead)), std::string::npos) << f;
            check(f);
        }
        EXPECT_FALSE(job.anybody_alive());
    }
    std::ranges::sort(times);
    return times[2];
}

/// Kills five times, or again if that took longer than promised: the machine may have been busy, twice. A device for
/// verbs may be in an emulated machine, which is slow.
template <class Check>
void expect_survivors_name_the_dead(const std::string& mode, int victim, Check check) {
    std::mt19937 random(7);
    auto median = kill_five_times(mode, victim, random, check);
    if (is_over_verbs(mode)) return;
    for (int again = 0; again < 2 && median >= promised && !testing::Test::HasFailure(); ++again)
        median = kill_five_times(mode, victim, random, check);
    EXPECT_LT(median, promised);
}

} // namespace halocline_test
