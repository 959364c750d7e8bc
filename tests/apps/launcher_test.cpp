// SPDX-License-Identifier: Apache-2.0
// What a launcher passes on: the output of ranks on other hosts, which must not keep it from its other duties, and the
// signals of a terminal.
#include "programs.hpp"

#include <halocline_test/send_signal.hpp>
#include <halocline_test/shell_script.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace halocline_test;

/// Two ranks, each behind an agent, as if they were on two hosts.
std::string on_two_hosts(const scratch_folder& scratch) {
    return bin + "halocline-run --remote-shell " + shell_of_this_host(scratch) + " --hosts A:1,B:1 ";
}

bool becomes_true(const std::function<bool()>& condition) {
    for (int tries = 0; tries < 1000; ++tries) {
        if (condition()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
}

/// Ranks print lines of 4000 bytes and count them; a pipe that nobody reads is open until the launcher has ended. The
/// job is told to end once they have to wait: 200 lines, of one rank perhaps, are more than pipes hold.
void expect_that_unread_output_is_bounded(const scratch_folder& scratch, const std::string& launch) {
    const std::string counts = scratch / "count";
    const std::string rank =
        "bash -c \"printf -v line %04000d; while echo \\$line; do echo -n x >>" + counts + "\\$HALOCLINE_RANK; done\"";
    const std::string until_they_wait =
        "last=0; for try in $(seq 300); do sleep 0.2; now=$(cat " + counts + "? 2>/dev/null | wc -c); " +
        "[ $now -ge 200 ] && [ $now = $last ] && break; [ $now -ge 5000 ] && break; last=$now; done; ";
    const auto run =
        shell("{ " + launch + "-- " + rank + " & " + until_they_wait + "kill $!; wait $!; echo $? >" +
              (scratch / "code") + "; } | { until [ -s " + (scratch / "code") + " ]; do sleep 0.05; done; }");

    EXPECT_EQ(read_text(scratch / "code"), std::to_string(128 + SIGTERM) + "\n") << run.err;
    EXPECT_TRUE(contains(run.err, "halocline-run: standard output is not read; ")) << run.err;
    std::uintmax_t lines = 0;
    for (const char* which : {"0", "1"}) lines += read_text(counts + which).size();
    EXPECT_LT(lines * 4001, 8U << 20); // a MiB in the launcher and in each agent; buffers of pipes and sockets
}

TEST(Launcher, EndsAJobWhoseOutputIsNotReadAndKeepsLittleOfIt) {
    const scratch_folder scratch;
    expect_that_unread_output_is_bounded(scratch, on_two_hosts(scratch));
}

TEST(Launcher, EndsAJobWhoseLabelledOutputIsNotReadAndKeepsLittleOfIt) {
    const scratch_folder here, there;
    expect_that_unread_output_is_bounded(here, bin + "halocline-run -n 2 --label ");
    expect_that_unread_output_is_bounded(there, on_two_hosts(there) + "--label ");
}

/// Each rank prints the end of its line once the other has begun one.
TEST(Launcher, LabelsWholeLinesWithTheRanksNumbers) {
    const scratch_folder scratch;
    for (const std::string& launch : {bin + "halocline-run -n 2 ", on_two_hosts(scratch),
                                      bin + "halocline-run --remote-shell " + (scratch / "shell") + " --hosts A:2 "}) {
        const auto run = shell(launch + "--label -- sh -c \"printf x; echo >" + (scratch / "begun") +
                               "\\$HALOCLINE_RANK; until [ -e " + (scratch / "begun") +
                               "\\$((1-\\$HALOCLINE_RANK)) ]; do sleep 0.02; done; echo y; echo; printf end\" | sort");

        EXPECT_EQ(run.out, "0: \n0: end\n0: xy\n1: \n1: end\n1: xy\n") << launch << run.err;
        EXPECT_EQ(run.err, "") << launch;
        for (const char* rank : {"0", "1"}) std::filesystem::remove((scratch / "begun") + rank);
    }
}

TEST(Launcher, ALabelledLineThatDoesNotEndIsPassedOnInPieces) {
    const std::string launch = bin + "halocline-run -n 1 --label -- ";
    const auto run = run_command(launch + "sh -c 'printf %0200000d 0; echo; echo last'");

    std::istringstream in(run.out);
    std::string zeros, line;
    for (; std::getline(in, line) && line != "0: last"; zeros += line.substr(3)) {
        EXPECT_TRUE(line.starts_with("0: "));
        EXPECT_LE(line.size(), 70'000U);
    }
    EXPECT_EQ(line, "0: last");
    EXPECT_EQ(zeros, std::string(200'000, '0'));
}

/// Its end comes with the next bytes that are read.
TEST(Launcher, ALabelledLineThatIsJustAsLongAsAPieceIsOneLine) {
    const auto run = run_command(bin + "halocline-run -n 1 --label -- sh -c 'printf %065536d 0; sleep 0.2; echo; "
                                       "printf %065535d 0; sleep 0.2; echo; echo; echo last'");

    EXPECT_EQ(run.out, "0: " + std::string(65536, '0') + "\n0: " + std::string(65535, '0') + "\n0: \n0: last\n");
}

/// 588895 bytes pass through a `tee` that begins once its rank has ended: more than pipes hold.
TEST(Launcher, WhatATeePrintsBehindItsRankIsLabelledAndItsFileIsWhole) {
    const scratch_folder scratch;
    const std::string log = scratch / "log";
    const std::string rank = "-- bash -c \"exec > >(sleep 0.1; tee " + log + "); echo hi; exec >&-\"",
                      long_rank = "-- bash -c \"exec > >(sleep 0.1; seq 100000 | tee " + log + ")\"";
    std::string all, labelled;
    for (int i = 1; i <= 100'000; ++i) {
        all += std::to_string(i) + "\n";
        labelled += "0: " + std::to_string(i) + "\n";
    }

    const auto one = shell(bin + "halocline-run -n 1 --label " + rank),
               many = shell(bin + "halocline-run -n 1 --label " + long_rank);
    EXPECT_EQ(one.out, "0: hi\n");
    EXPECT_TRUE(many.out == labelled) << many.out.size();
    EXPECT_EQ(one.err + many.err, "");
    EXPECT_TRUE(read_text(log) == all);

    const std::string remote = bin + "halocline-run --remote-shell " + shell_of_this_host(scratch) + " --hosts A:1 ";
    for (const char* label : {"", "--label "}) { // what is printed is lost with the launcher
        std::filesystem::remove(log);
        shell(remote + label + long_rank);

        EXPECT_TRUE(becomes_true([&] { return read_text(log) == all; })) << label << read_text(log).size();
    }
}

TEST(Launcher, NamesARankOfAnotherHostThatItKills) {
    const scratch_folder scratch;
    const std::string there = scratch / "there";
    const auto run =
        run_command(on_two_hosts(scratch) + "-- sh -c 'if [ $HALOCLINE_RANK = 1 ]; then until [ -e " + there +
                    " ]; do sleep 0.02; done; kill -9 $$; fi; echo >" + there + "; while :; do :; done'");

    EXPECT_TRUE(contains(run.err, ") died of signal 9; not ended ")) << run.err;
    EXPECT_TRUE(contains(run.err, "killed now: rank 0 on A\n")) << run.err;
}

/// As ssh does that waits for its ProxyCommand.
std::string shell_that_hangs_for_gone(const scratch_folder& scratch) {
    return shell_script(scratch, "shell",
                        "[ $1 = gone ] || { shift; exec \"$@\"; }\nsleep 1000 &\necho $! >" + (scratch / "child") +
                            ".tmp\nmv " + (scratch / "child") + ".tmp " + (scratch / "child") + "\nwait\n");
}

TEST(Launcher, ARemoteShellThatDoesNotAnswerEndsWithTheJobAndWithWhatItHasStarted) {
    const scratch_folder scratch;
    const std::string child = scratch / "child";
    const auto run =
        shell(bin + "halocline-run --remote-shell " + shell_that_hangs_for_gone(scratch) +
              " --hosts gone:2 -- true & until [ -e " + child + " ]; do sleep 0.02; done; kill -TERM $!; wait $!");

    EXPECT_EQ(run.exit_code, 128 + SIGTERM);
    EXPECT_EQ(run.err, "halocline-run: rank 0 was not started: host gone has not answered\n");
    std::string of_child = read_text(child);
    of_child.pop_back();
    EXPECT_TRUE(becomes_true([&] { return read_text("/proc/" + of_child + "/cmdline").empty(); }));
}

TEST(Launcher, ARemoteShellThatDoesNotAnswerIsNotWaitedForOnceARankHasFailed) {
    const scratch_folder scratch;
    const std::string launch = bin + "halocline-run --remote-shell " + shell_that_hangs_for_gone(scratch) +
                               " --hosts there:1,gone:1 -- sh -c ";
    for (const auto& [end, code] : {std::pair("exit 7", 7), std::pair("kill -SEGV $$", 128 + SIGSEGV)}) {
        const auto run = run_command(launch + "'ulimit -c 0; " + end + "'");

        EXPECT_EQ(run.exit_code, code) << run.err;
        EXPECT_TRUE(contains(run.err, "halocline-run: rank 1 was not started: host gone has not answered\n"))
            << run.err;
        EXPECT_FALSE(contains(run.err, "killed now")) << run.err;
    }
}

/// A batch system signals all processes of its job, so an agent, too, and the remote shell that it speaks through.
TEST(Launcher, AnAgentPassesSignalsForRanksOnAndARemoteShellSurvivesThem) {
    const scratch_folder to_agent, to_all;
    const std::string relay = shell_script(to_all, "shell", "shift\n\"$@\" | cat\n");
    for (const auto& [launch, whom] :
         {std::pair(on_two_hosts(to_agent), "$PPID"), // 0: the process group, that of a remote shell
          std::pair(bin + "halocline-run --remote-shell " + relay + " --hosts A:1,B:1 ", "0")}) {
        const auto run = run_command(launch + "-- sh -c 'trap \"echo got it; exit\" USR1; kill -USR1 " + whom +
                                     "; while :; do sleep 0.02; done'");

        EXPECT_EQ(run.exit_code, 0) << run.err;
        EXPECT_EQ(run.out, "got it\ngot it\n") << whom;
        EXPECT_EQ(run.err, "") << whom;
    }
}

TEST(Launcher, SaysThatItBindsNoRanksIfOnlyTheirThreadsKeepItFromThat) {
    cpu_set_t usable;
    ASSERT_EQ(sched_getaffinity(0, sizeof usable, &usable), 0);
    int first = 0;
    while (!CPU_ISSET(first, &usable)) ++first;
    const std::string on_one = " taskset -c " + std::to_string(first) + " " + bin + "halocline-run -n 2 ";

    const auto threads = run_command("env OMP_NUM_THREADS=3" + on_one + "-- true"),
               one_each = run_command("env OMP_NUM_THREADS=1" + on_one + "-- true"),
               meant = run_command("env OMP_NUM_THREADS=3" + on_one + "--no-bind -- true");

    expect_one_error(threads, 0, "2 of 3 threads ($OMP_NUM_THREADS) take 6 processors, 1 may be used; set OMP_NUM_THR");
    EXPECT_EQ(one_each.err, "");
    EXPECT_EQ(meant.err, "");
}

TEST(Launcher, SaysThatTheWorkingDirectoryIsGone) {
    const scratch_folder scratch;
    const std::string gone = scratch / "gone";
    const auto run =
        shell("mkdir " + gone + " && cd " + gone + " && rmdir " + gone + " && " + on_two_hosts(scratch) + "-- true");

    EXPECT_EQ(run.exit_code, 2);
    EXPECT_TRUE(contains(run.err, "halocline-run: the working directory")) << run.err;
    EXPECT_TRUE(contains(run.err, "; start from another\n")) << run.err;
}

/// Each host prints 1.7 MB, in pieces that end within lines; the reader is late.
TEST(Launcher, LinesOfTwoHostsArriveWholeAlsoIfTheyWaited) {
    const scratch_folder scratch;
    constexpr int lines = 60'000;
    const auto run = shell(on_two_hosts(scratch) + "-- sh -c \"seq -f \\$HALOCLINE_RANK:%.0f:abcdefghijklmnopqrst " +
                           std::to_string(lines) + "; printf end\" | { sleep 0.3; cat; }");

    EXPECT_EQ(run.exit_code, 0) << run.err;
    std::istringstream in(run.out);
    std::array<int, 2> next{1, 1};
    int torn = 0, ends = 0;
    for (std::string line; std::getline(in, line);) {
        for (; line.starts_with("end"); ++ends) line.erase(0, 3); // of a host that ended first
        if (line.empty()) continue;
        const std::size_t host = line[0] == '0' ? 0 : 1;
        const std::string expected = std::to_string(host) + ":" + std::to_string(next[host]) + ":abcdefghijklmnopqrst";
        ++(line == expected ? next[host] : torn);
    }
    EXPECT_EQ(torn, 0);
    EXPECT_EQ(ends, 2);
    for (const int n : next) EXPECT_EQ(n, lines + 1);
}

/// The rank goes on only once the reader has what a line may hold back.
TEST(Launcher, ALineThatDoesNotEndIsNotKeptForEver) {
    const scratch_folder scratch;
    const std::string go = scratch / "go";
    const auto run = shell("timeout 60 " + on_two_hosts(scratch) + "-- sh -c \"[ \\$HALOCLINE_RANK = 1 ] && exit; " +
                           "head -c 70000 /dev/zero; until [ -e " + go + " ]; do sleep 0.02; done\" | " +
                           "{ head -c 65536 >" + (scratch / "first") + "; touch " + go + "; cat; }");

    EXPECT_EQ(std::filesystem::file_size(scratch / "first"), 65536U);
    EXPECT_EQ(run.out.size(), 70000U - 65536U);
}

/// A job with a terminal of its own; `script`: of bash, for each rank.
class job_on_a_terminal {
  public:
    explicit job_on_a_terminal(const std::string& script) {
        const int terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) return;
        const std::string name = ptsname(terminal);
        keys_ = terminal;
        launcher = fork();
        if (launcher != 0) return;
        std::signal(SIGINT, SIG_DFL);
        setsid();
        const int stream = open(name.c_str(), O_RDWR); // becomes the terminal of the session
        for (const int each : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(stream, each);
        execl((bin + "halocline-run").c_str(), "halocline-run", "-n", "2", "--", "bash", "-c", script.c_str(), nullptr);
        _exit(127);
    }
    ~job_on_a_terminal() {
        if (launcher > 0) kill(launcher, SIGKILL);
        wait();
        close(keys_);
    }
    job_on_a_terminal(const job_on_a_terminal&) = delete;
    job_on_a_terminal& operator=(const job_on_a_terminal&) = delete;

    void press(char key) const { EXPECT_EQ(write(keys_, &key, 1), 1); }
    int wait() {
        int how = -1;
        if (launcher > 0) waitpid(launcher, &how, 0);
        launcher = -1;
        return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
    }

    pid_t launcher = -1;

  private:
    int keys_ = -1;
};

/// The terminal sends it to each process itself. SIGUSR1 comes behind whatever the launcher passes on before.
TEST(Launcher, AKeyThatInterruptsReachesARankOnce) {
    const scratch_folder scratch;
    const auto file = [&](const char* name, int rank) { return (scratch / name) + std::to_string(rank); };
    const auto both_are = [&](const char* name) {
        return becomes_true([&] { return !read_text(file(name, 0)).empty() && !read_text(file(name, 1)).empty(); });
    };
    job_on_a_terminal job("trap 'echo -n x >>" + (scratch / "interrupted") + "$HALOCLINE_RANK' INT; trap 'echo >" +
                          (scratch / "done") + "$HALOCLINE_RANK; exit' USR1; echo >" + (scratch / "ready") +
                          "$HALOCLINE_RANK; while :; do :; done");
    if (job.launcher < 0) GTEST_SKIP() << "no pseudo terminals here";
    ASSERT_TRUE(both_are("ready"));

    job.press('\3'); // ^C
    ASSERT_TRUE(both_are("interrupted"));
    send_signal(job.launcher, SIGUSR1);

    EXPECT_EQ(job.wait(), 128 + SIGINT);
    for (const int rank : {0, 1}) {
        EXPECT_EQ(read_text(file("done", rank)), "\n");
        EXPECT_EQ(read_text(file("interrupted", rank)), "x");
    }
}

} // namespace
