// SPDX-License-Identifier: Apache-2.0
// However a job ends, what its ranks have started ends with it: the program in a wrapper script, and what that starts.
#include <halocline_test/run_command.hpp>
#include <halocline_test/send_signal.hpp>
#include <halocline_test/shell_script.hpp>

#include <gtest/gtest.h>

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace halocline_test;
using clock_type = std::chrono::steady_clock;

const std::string bin = HALOCLINE_BIN "/";

/// Those whose command line contains that text, but for this one.
std::vector<pid_t> processes_with(const std::string& text) {
    std::vector<pid_t> found;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", none)) {
        const std::string name = entry.path().filename();
        pid_t process = 0;
        const auto [rest, bad] = std::from_chars(name.data(), name.data() + name.size(), process);
        if (bad != std::errc() || *rest != '\0' || process == getpid()) continue;
        if (read_text("/proc/" + name + "/cmdline").find(text) != std::string::npos) found.push_back(process);
    }
    return found;
}

template <class Condition>
bool becomes_true(Condition condition, int most_s) {
    for (const auto end = clock_type::now() + std::chrono::seconds(most_s); clock_type::now() < end;) {
        if (condition()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return condition();
}

/// A job whose ranks are shells that wait for a program; all of its processes have `mark` in their command lines.
class wrapped_job {
  public:
    /// `program`: of a shell, runs for ever.  `options`: of halocline-run.
    wrapped_job(const std::string& options, const std::string& program) {
        const std::string script = "echo $$ >" + mark + "pid.$HALOCLINE_RANK; " + program + "; true";
        const std::string line = "exec " + bin + "halocline-run " + options + " -- bash -c '" + script + "' " + mark;
        launcher = fork();
        if (launcher != 0) return;
        std::signal(SIGINT, SIG_DFL);
        std::signal(SIGHUP, SIG_DFL);
        for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
            dup2(open((mark + "said").c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600), stream);
        execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
        _exit(127);
    }
    ~wrapped_job() {
        for (const pid_t p : processes_with(mark)) kill(p, SIGKILL);
        wait();
    }
    wrapped_job(const wrapped_job&) = delete;
    wrapped_job& operator=(const wrapped_job&) = delete;

    void wait() {
        if (launcher > 0) waitpid(launcher, nullptr, 0);
        launcher = -1;
    }
    [[nodiscard]] std::string said() const { return read_text(mark + "said"); }
    [[nodiscard]] pid_t wrapper(int rank) const {
        return std::atoi(read_text(mark + "pid." + std::to_string(rank)).c_str());
    }
    [[nodiscard]] bool is_gone() const { return processes_with(mark).empty(); }

    scratch_folder scratch;
    std::string mark = scratch / "";
    pid_t launcher = -1;
};

/// Programs of a wrapped_job: $0 is its mark.
const std::string joined = bin + "heat4d --grid 4.4.4.4 --steps 1000000000 --json ${0}result";
const std::string foreign = "tail -f ${0}pid.$HALOCLINE_RANK >/dev/null";

/// Two ranks on this host, each behind an agent, as if they were on two; the mark is not known yet.
std::string on_hosts(const scratch_folder& scratch) {
    return "--remote-shell " + shell_of_this_host(scratch) + " --hosts A:1,B:1";
}

/// Do the programs run within that time?
bool run(const wrapped_job& job, int most_s) {
    // A launcher, two shells, two programs.
    return becomes_true(
        [&] { return processes_with(job.mark).size() >= 5 && job.wrapper(0) > 0 && job.wrapper(1) > 0; }, most_s);
}

/// Returns when the programs run; normally they have joined the job by then, and whether they have must not matter.
void start(const wrapped_job& job) {
    ASSERT_TRUE(run(job, 30)) << job.said();
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
}

/// Expects that the job ends and all of its processes do.
void expect_the_end_of_all(wrapped_job& job, const std::string& options) {
    job.wait();
    EXPECT_TRUE(becomes_true([&] { return job.is_gone(); }, 8))
        << options << ": " << processes_with(job.mark).size() << " processes are left; said:\n"
        << job.said();
}

/// Starts a job, ends it by `end` once its programs run, and expects that all of its processes end.
template <class End>
void expect_the_end_of_all(const std::string& options, const std::string& program, End end) {
    wrapped_job job(options, program);
    start(job);

    end(job);

    expect_the_end_of_all(job, options);
}

void signal_launcher(const wrapped_job& job, int number) { send_signal(job.launcher, number); }

TEST(Leftovers, WhateverEndsTheLauncherEndsTheProgramsOfWrappers) {
    const scratch_folder scratch;
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGKILL}) {
        SCOPED_TRACE(strsignal(number));
        const auto end = [&](const wrapped_job& job) { signal_launcher(job, number); };
        expect_the_end_of_all("-n 2", joined, end);
        if (number == SIGINT || number == SIGHUP) continue; // the same as SIGTERM
        expect_the_end_of_all("-n 2", foreign, end);
        expect_the_end_of_all(on_hosts(scratch), joined, end);
    }
}

/// A rank kills it, and leaves a program in a session of its own.
TEST(Leftovers, ALauncherThatIsKilledWhileItStartsRanksLeavesNothing) {
    wrapped_job job("-n 64", "[ $HALOCLINE_RANK = 0 ] && (setsid " + foreign + " & kill -9 $PPID); " + foreign);

    expect_the_end_of_all(job, "-n 64");
    EXPECT_EQ(job.wrapper(63), 0) << "the launcher had started all";
}

void expect_a_time_limit_to_end_all(const std::string& options, const std::string& program) {
    for (int limit = 2; limit <= 32; limit *= 2) { // seconds; on a busy machine the programs may not run by then
        wrapped_job job("--timeout " + std::to_string(limit) + " " + options, program);
        if (!run(job, limit)) continue;
        expect_the_end_of_all(job, options);
        EXPECT_NE(job.said().find("(--timeout); ending all ranks"), std::string::npos) << job.said();
        return;
    }
    ADD_FAILURE() << options << ": the programs do not run";
}

TEST(Leftovers, ATimeLimitEndsTheProgramsOfWrappers) {
    const scratch_folder scratch;
    for (const std::string& program : {joined, foreign}) expect_a_time_limit_to_end_all("-n 2", program);
    expect_a_time_limit_to_end_all(on_hosts(scratch), joined);
}

TEST(Leftovers, TheEndOfOneWrapperEndsAllPrograms) {
    const scratch_folder scratch;
    for (const std::string& where : {std::string("-n 2"), on_hosts(scratch)}) {
        for (const std::string& program : {joined, foreign}) {
            SCOPED_TRACE(where + ", " + program);
            expect_the_end_of_all(where, program, [](const wrapped_job& job) { send_signal(job.wrapper(1), SIGKILL); });
        }
    }
}

/// Without the watchdog, which ends a rank whose launcher is gone.
TEST(Leftovers, ProgramsOfWrappersEndWithoutTheirWatchdogsToo) {
    for (const int number : {SIGTERM, SIGKILL})
        expect_the_end_of_all("-n 2", "export HALOCLINE_GRACE_MS=0; " + joined,
                              [&](const wrapped_job& job) { signal_launcher(job, number); });
}

/// And without a launcher that looks for it, because it has left the job's processes and environment.
TEST(Leftovers, ARankWhoseLauncherIsGoneEndsByItself) {
    wrapped_job job("-n 2", "env -u HALOCLINE_JOB " + joined);
    start(job);

    signal_launcher(job, SIGKILL);

    job.wait();
    EXPECT_TRUE(becomes_true([&] { return job.is_gone(); }, 8)) << job.said();
    EXPECT_NE(job.said().find("halocline-run has ended, or the process that it started as this rank"),
              std::string::npos)
        << job.said();
}

TEST(Leftovers, WhatIsLeftHasTimeToEndAndIsNamedIfItIsKilled) {
    const scratch_folder scratch;
    const std::string file = scratch / "log";
    const auto in_time = run_command(bin + "halocline-run -n 1 -- sh -c '(sleep 0.5; echo late >" + file + ") &'");
    const auto killed = run_command(bin + "halocline-run -n 1 -- sh -c 'setsid nohup sleep 100 & exit 0'");

    EXPECT_EQ(in_time.exit_code, 0);
    EXPECT_EQ(in_time.err, "");
    EXPECT_EQ(read_text(file), "late\n");
    EXPECT_EQ(killed.exit_code, 0);
    EXPECT_TRUE(killed.err.starts_with("halocline-run: killed what ranks had started and not waited for: sleep (pid "))
        << killed.err;
    EXPECT_LT(killed.seconds, 50);
}

/// As with `exec` in a script, or `> >(tee log)`: children of the shell that became the launcher, and their children.
TEST(Leftovers, WhatTheLaunchersProcessHadStartedBeforeIsLeftAlone) {
    const scratch_folder scratch;
    const std::string file = scratch / "before";
    const std::string job = " exec " + bin + "halocline-run -n 1 -- sh -c \"sleep 100 & exit 0\"";
    const std::string before = "sleep 101 & echo $! >" + file + "; (sleep 102 & echo $! >>" + file +
                               "; wait) & until [ $(wc -l <" + file + ") = 2 ]; do :; done;";

    const auto nothing_left = run_command("bash -c '" + before + " exec " + bin + "halocline-run -n 1 -- true'");
    const std::string first = read_text(file);
    const auto one_left = run_command("bash -c '" + before + job + "'");

    EXPECT_EQ(nothing_left.exit_code, 0);
    EXPECT_EQ(nothing_left.err, "");
    EXPECT_TRUE(
        one_left.err.starts_with("halocline-run: killed what ranks had started and not waited for: sleep (pid "))
        << one_left.err;
    EXPECT_EQ(one_left.err.find("), "), std::string::npos) << "more than one: " << one_left.err;
    std::istringstream pids(first + read_text(file));
    int there = 0;
    for (pid_t p; pids >> p; kill(p, SIGKILL)) there += kill(p, 0) == 0 ? 1 : 0;
    EXPECT_EQ(there, 4);
}

} // namespace
