// SPDX-License-Identifier: Apache-2.0
// What happens when ranks die: real kills of real processes. This program is both the test and, with "rank", the ranks.
#include "job_core.hpp"

#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/messenger.hpp>
#include <halocline/comm/one_sided.hpp>
#include <halocline/comm/slab.hpp>
#include <halocline/comm/window.hpp>

#include <gtest/gtest.h>
#include <halocline_test/send_signal.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace halocline;
using namespace halocline::comm;
using halocline_test::send_signal;
using clock_type = std::chrono::steady_clock;

std::string self, runner;

/// Small messages to whoever comes first and large ones round a ring, for ever.
[[noreturn]] void exchange_messages(const job& j) {
    messenger m(j);
    constexpr std::size_t n = 1 << 20;
    const std::span out(static_cast<std::byte*>(j.memory().allocate(n)), n),
        in(static_cast<std::byte*>(j.memory().allocate(n)), n);
    const int next = (j.rank() + 1) % j.ranks();
    while (true) {
        message_request small, large;
        m.isend(small, out.first(8), next, 1);
        m.isend(large, out, next, 2);
        status s = m.recv(in, any_source, 1);
        if (s == status::ok) s = m.recv(in, any_source, 2);
        if (s == status::ok) s = m.wait(large);
        if (s != status::ok) j.fail(s, m.pending());
    }
}

/// Large puts round a ring, for ever.
[[noreturn]] void put_for_ever(const job& j) {
    constexpr std::size_t n = 1 << 20;
    std::vector<int> near;
    for (int r = 0; r < j.ranks(); ++r)
        if (r != j.rank()) near.push_back(r);
    exposure e(j, near, n, {"large puts", 1});
    const std::vector<std::byte> out(n);
    const int next = (j.rank() + 1) % j.ranks();
    const auto at = static_cast<std::size_t>(std::find(near.begin(), near.end(), next) - near.begin());
    for (std::uint64_t k = 1;; ++k) {
        status s = e.put_signal(at, out, 0, 0);
        if (s == status::ok) s = e.wait_signals(0, k);
        if (s != status::ok) j.fail(s, e.pending());
    }
}

/// Windows with every other rank, until one is gone.
void exchange_for_ever(const job& j) {
    std::pmr::vector<double> out(1000, &j.memory()), in(1000 * static_cast<std::size_t>(j.ranks()), &j.memory());
    std::vector<connection> connections;
    std::vector<send_window<double>> sends;
    std::vector<recv_window<double>> recvs;
    for (int r = 0; r < j.ranks(); ++r) {
        if (r == j.rank()) continue;
        connection& c = connections.emplace_back(j, r);
        sends.emplace_back(c, out);
        recvs.emplace_back(c, std::span(in).subspan(1000 * static_cast<std::size_t>(r), 1000));
    }
    for (connection& c : connections) c.connect();
    const auto all = [&](auto& windows, auto call) {
        for (auto& w : windows) {
            if (const status s = call(w); s != status::ok) j.fail(s, w.pending());
        }
    };
    while (true) {
        all(recvs, [](auto& w) { return w.init(); });
        all(sends, [](auto& w) { return w.init(); });
        all(sends, [](auto& w) { return w.post(); });
        all(recvs, [](auto& w) { return w.post(); });
        all(recvs, [](auto& w) { return w.wait(); });
        all(sends, [](auto& w) { return w.wait(); });
    }
}

/// Nothing that the library sees.
void compute_for(clock_type::duration time) {
    const auto end = clock_type::now() + time;
    while (clock_type::now() < end) {
    }
}

/// Notices the death, then waits for a library in a destructor, for ever.
[[noreturn]] void end_and_get_stuck(const job& j) {
    try {
        while (true) j.barrier();
    } catch (const rank_failure&) {
        const closing_scope closing(j.core().doing);
        compute_for(std::chrono::seconds(60));
        throw;
    }
}

/// Notices the death, then has something to save before it says so.
[[noreturn]] void end_after_other_work(const job& j) {
    try {
        while (true) j.barrier();
    } catch (const rank_failure&) {
        compute_for(std::chrono::seconds(1)); // twice the grace time
        throw;
    }
}

/// A rank of the job under test: announces itself, then works until it is killed or fails.
int be_rank(std::string mode) {
    try {
        job_options options;
        if (mode.starts_with("ofi-")) { // over libfabric, which never tells: liveness is apart from the data path
            mode.erase(0, 4);
            options.transports = {"ofi"};
            options.ofi_provider = "tcp;ofi_rxm";
            if (mode.starts_with("shm-")) {
                mode.erase(0, 4);
                options.ofi_provider = "shm";
            }
        }
        const bool across_hosts = mode.starts_with("hosts-"); // by hosts_test.cpp, which waits until ranks add numbers
        if (across_hosts) {
            mode.erase(0, 6);
            options.transports = {"shm", "ofi"};
            options.ofi_provider = "tcp;ofi_rxm";
        }
        if (mode.starts_with("nodes-")) { // each rank a node of its own: deaths are told by TCP
            mode.erase(0, 6);
            setenv("HALOCLINE_NODE", std::getenv("HALOCLINE_RANK"), 1);
        }
        if (mode.starts_with("verbs-")) {
            mode.erase(0, 6);
            options.transports = {"verbs"};
        }
        if (mode == "join" && std::string(std::getenv("HALOCLINE_RANK")) == "1") {
            std::printf("pid 1 %d\n", static_cast<int>(getpid()));
            std::fflush(stdout);
            std::this_thread::sleep_for(std::chrono::seconds(20)); // never joins
        }
        const job j = job::from_environment(options);
        const auto announce = [&] {
            std::printf("pid %d %d\n", j.rank(), static_cast<int>(getpid()));
            std::fflush(stdout);
        };
        if (!across_hosts) announce();
        if (mode == "exit" && j.rank() == 1) std::_Exit(7);
        if (mode == "ok") return 0;
        if (mode == "messages") exchange_messages(j);
        if (mode == "puts") put_for_ever(j);
        if (mode == "window") exchange_for_ever(j);
        if (mode == "computing") compute_for(std::chrono::seconds(60));
        if (mode == "stuck") end_and_get_stuck(j);
        if (mode == "busy") end_after_other_work(j);
        global_sum sum(j, 8);
        if (across_hosts) announce();
        for (double v[3]{};;) {
            if (mode == "setup") {
                j.barrier();
            } else if (mode == "plan") {
                global_sum other(j, 4);
            } else if (const status s = sum(v); s != status::ok) {
                j.fail(s, sum.pending());
            }
        }
    } catch (const rank_failure& e) {
        std::printf("failure of %d: %s\n", e.culprit(), e.what());
        std::fflush(stdout);
        return 3;
    }
}

struct running_job {
    pid_t launcher = -1;
    FILE* output = nullptr;
    std::vector<pid_t> ranks;
    std::vector<std::string> failures;
    std::vector<std::string> last_words; ///< of witnesses, for ranks that could not
    std::string said;                    ///< all lines so far

    running_job(int n, const std::string& mode, std::size_t announced) : ranks(static_cast<std::size_t>(n), -1) {
        int pipe_ends[2];
        if (pipe(pipe_ends) != 0) std::abort();
        launcher = fork();
        if (launcher == 0) {
            dup2(pipe_ends[1], STDOUT_FILENO);
            dup2(pipe_ends[1], STDERR_FILENO);
            ::close(pipe_ends[0]);
            ::close(pipe_ends[1]);
            execl(runner.c_str(), runner.c_str(), "-n", std::to_string(n).c_str(), "--timeout", "15", "--",
                  self.c_str(), "rank", mode.c_str(), nullptr);
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

/// The promise; and what a machine with much else to do may take, still far from the 15 s after which waits end anyway.
constexpr auto promised = std::chrono::seconds(1), under_load = std::chrono::seconds(8);

class Killed : public testing::TestWithParam<const char*> {};

TEST_P(Killed, SurvivorsNameTheDeadWithinASecondAndTheJobEndsWithThree) {
    const bool over_verbs = std::string(GetParam()).starts_with("verbs-");
    if (over_verbs && !std::filesystem::exists("/sys/class/infiniband"))
        GTEST_SKIP() << "no RDMA device; see comm.verbs_vm";
    std::mt19937 random(7);
    std::vector<clock_type::duration> times;
    for (int round = 0; round < 5; ++round) {
        running_job job_under_test(3, GetParam(), 3);
        const int victim = static_cast<int>(random() % 3);
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));

        const auto begin = clock_type::now();
        send_signal(job_under_test.ranks[victim], SIGKILL);
        const int code = job_under_test.wait();
        times.push_back(clock_type::now() - begin);

        EXPECT_LT(times.back(), under_load);
        EXPECT_EQ(code, 3);
        ASSERT_EQ(job_under_test.failures.size(), 2u);
        const std::string name =
            "rank " + std::to_string(victim) + " (pid " + std::to_string(job_under_test.ranks[victim]);
        for (const std::string& f : job_under_test.failures) {
            EXPECT_NE(f.find(name), std::string::npos) << f;
            EXPECT_NE(f.find("while this rank waited for"), std::string::npos) << f;
        }
        EXPECT_FALSE(job_under_test.anybody_alive());
    }
    std::sort(times.begin(), times.end());
    if (!over_verbs) { // that device may be in an emulated machine
        EXPECT_LT(times[2], promised) << "the median";
    }
}

INSTANTIATE_TEST_SUITE_P(During, Killed, testing::Values("setup", "plan", "sum", "messages", "puts", "window"));
#ifdef HALOCLINE_WITH_OFI
INSTANTIATE_TEST_SUITE_P(OverOfi, Killed, testing::Values("ofi-plan", "ofi-sum", "ofi-messages", "ofi-puts"));
INSTANTIATE_TEST_SUITE_P(OverNodes, Killed, testing::Values("ofi-nodes-setup", "ofi-nodes-sum"));
#endif
#ifdef HALOCLINE_WITH_VERBS
INSTANTIATE_TEST_SUITE_P(OverVerbs, Killed, testing::Values("verbs-plan", "verbs-sum", "verbs-messages", "verbs-puts"));
#endif

/// A rank of three is killed in that mode.
struct end_of_three {
    running_job job_under_test;
    std::string dead, survivor;
    int code;
    explicit end_of_three(const std::string& mode) : job_under_test(3, mode, 3) {
        const auto name = [&](int r) {
            return "rank " + std::to_string(r) + " (pid " + std::to_string(job_under_test.ranks[r]);
        };
        dead = name(1);
        survivor = name(2);
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

TEST(Kill, LeavesTimeToWhoHasNoticed) {
    const end_of_three seen("busy");

    EXPECT_EQ(seen.code, 3) << seen.job_under_test.said;
    EXPECT_EQ(seen.job_under_test.failures.size(), 2u) << seen.job_under_test.said;
    EXPECT_TRUE(seen.job_under_test.last_words.empty()) << seen.job_under_test.said;
}

TEST(Kill, BeforeJoiningIsReportedToThoseWhoWait) {
    running_job job_under_test(3, "join", 1);

    send_signal(job_under_test.ranks[1], SIGKILL);
    const int code = job_under_test.wait();

    EXPECT_EQ(code, 3);
    ASSERT_EQ(job_under_test.failures.size(), 2u);
    EXPECT_NE(job_under_test.failures[0].find("rank 1 (pid " + std::to_string(job_under_test.ranks[1])),
              std::string::npos);
}

TEST(Kill, BeforeJoiningIsReportedWhileTheLauncherIsStopped) {
    running_job job_under_test(3, "join", 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(100)); // all ranks have been started
    send_signal(job_under_test.launcher, SIGSTOP);

    const auto begin = clock_type::now();
    send_signal(job_under_test.ranks[1], SIGKILL);
    while (job_under_test.failures.size() < 2 && job_under_test.line()) {
    }

    EXPECT_LT(clock_type::now() - begin, under_load);
    ASSERT_EQ(job_under_test.failures.size(), 2u);
    EXPECT_NE(job_under_test.failures[0].find("rank 1 (pid " + std::to_string(job_under_test.ranks[1])),
              std::string::npos);
    send_signal(job_under_test.launcher, SIGCONT);
    EXPECT_EQ(job_under_test.wait(), 3);
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
    EXPECT_EQ(job_under_test.failures.size(), 2u);
    send_signal(job_under_test.launcher, SIGCONT);
    EXPECT_EQ(job_under_test.wait(), 3);
}

TEST(Kill, OfTheLauncherLeavesNobody) {
    running_job job_under_test(3, "sum", 3);

    send_signal(job_under_test.launcher, SIGKILL);
    job_under_test.wait();

    const auto end = clock_type::now() + under_load;
    while (job_under_test.anybody_alive() && clock_type::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_FALSE(job_under_test.anybody_alive());
}

TEST(Launcher, EndsWithTheCodeOfTheRankThatFailedNotOfThoseWhoLostIt) {
    for (int round = 0; round < 5; ++round) { // whether or not rank 0 ends with 3 before anybody looks
        running_job failing(2, "exit", 2);
        EXPECT_EQ(failing.wait(), 7);
    }
    running_job fine(2, "ok", 2);
    EXPECT_EQ(fine.wait(), 0);
}

/// Names in /dev/shm with that word in them.
std::vector<std::string> shared_files(const std::string& word) {
    std::vector<std::string> found;
    for (const auto& f : std::filesystem::directory_iterator("/dev/shm"))
        if (std::string name = f.path().filename(); name.find(word) != std::string::npos) found.push_back(name);
    return found;
}

TEST(Launcher, LeavesNothingInSharedMemory) {
    running_job job_under_test(2, "sum", 2);
    send_signal(job_under_test.ranks[0], SIGKILL);
    job_under_test.wait();
    auto left = shared_files("halocline");
    std::erase_if(left, [](const std::string& f) { return f.starts_with("halocline-ofi-"); }); // of other tests
    EXPECT_EQ(left, std::vector<std::string>());
}

#ifdef HALOCLINE_WITH_OFI
TEST(Launcher, ThatIsKilledLeavesNothingOfLibfabricInSharedMemory) {
    running_job job_under_test(2, "ofi-shm-sum", 2);
    const auto left = [&] {
        std::size_t files = 0;
        for (const pid_t p : job_under_test.ranks)
            files += shared_files("halocline-ofi-" + std::to_string(p) + "-").size();
        return files;
    };
    EXPECT_EQ(left(), 2u) << "nothing to remove";
    send_signal(job_under_test.launcher, SIGKILL);
    job_under_test.wait();
    for (const auto end = clock_type::now() + under_load; left() > 0 && clock_type::now() < end;)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(left(), 0u);
}

TEST(Launcher, TellsTheSignalThatEndedARankOverLibfabric) {
    for (const char* program : {"ofi-shm-sum", "ofi-sum"}) {
        running_job job_under_test(2, program, 2);
        send_signal(job_under_test.ranks[0], SIGTERM);
        EXPECT_EQ(job_under_test.wait(), 128 + SIGTERM) << program;
        EXPECT_NE(job_under_test.said.find("was ended by signal 15"), std::string::npos) << job_under_test.said;
    }
}

TEST(Launcher, RemovesWhatLibfabricLeavesInSharedMemory) {
    running_job job_under_test(2, "ofi-shm-sum", 2);
    const std::string of_the_dead = std::to_string(job_under_test.ranks[0]) + "-",
                      of_the_other = std::to_string(job_under_test.ranks[1]) + "-";
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(shared_files("halocline-ofi-" + of_the_dead).size(), 1u) << "nothing to remove";
    send_signal(job_under_test.ranks[0], SIGKILL);
    job_under_test.wait();
    EXPECT_EQ(shared_files("halocline-ofi-" + of_the_dead), std::vector<std::string>());
    EXPECT_EQ(shared_files("halocline-ofi-" + of_the_other), std::vector<std::string>());
}
#endif

int exit_code_of(const std::string& arguments) {
    const int how = std::system((runner + " " + arguments + " >/dev/null 2>&1").c_str());
    return WEXITSTATUS(how);
}

TEST(Launcher, ASurvivorThatNeverReportsIsNamedBesideTheDead) {
    const std::string report = std::filesystem::temp_directory_path() / ("halocline-kill-" + std::to_string(getpid()));
    const std::string rank =
        "'if [ $HALOCLINE_RANK = 1 ]; then kill -9 $$; fi; while :; do :; done'"; // in a library, say
    const int how = std::system((runner + " -n 2 -- sh -c " + rank + " 2> " + report).c_str());
    std::ifstream file(report);
    const std::string said((std::istreambuf_iterator<char>(file)), {});
    std::filesystem::remove(report);

    EXPECT_NE(WEXITSTATUS(how), 0);
    EXPECT_NE(said.find("rank 1 (pid "), std::string::npos) << said;
    EXPECT_NE(said.find(") died of signal 9; not ended "), std::string::npos) << said;
    EXPECT_NE(said.find("killed now: rank 0 (pid "), std::string::npos) << said;
    EXPECT_NE(said.find(", running)"), std::string::npos) << said;
}

TEST(Launcher, BadArgumentsEndWithTwo) {
    EXPECT_EQ(exit_code_of("--help"), 0);
    EXPECT_EQ(exit_code_of(""), 2);
    EXPECT_EQ(exit_code_of("-n 0 -- true"), 2);
    EXPECT_EQ(exit_code_of("-n x -- true"), 2);
    EXPECT_EQ(exit_code_of("-n 2"), 2);
    EXPECT_EQ(exit_code_of("--color -n 2 -- true"), 2);
    EXPECT_EQ(exit_code_of("-n 2 -- no-such-program-here"), 2);
    EXPECT_EQ(exit_code_of("-n 2 -- true"), 0);
    EXPECT_EQ(exit_code_of("-n 2 --timeout 0.2 -- sleep 5"), 3);
}

} // namespace

int main(int argc, char** argv) {
    if (argc == 3 && std::string(argv[1]) == "rank") return be_rank(argv[2]);
    testing::InitGoogleTest(&argc, argv);
    self = std::filesystem::read_symlink("/proc/self/exe");
    runner = argc > 1 ? argv[1] : "halocline-run";
    return RUN_ALL_TESTS();
}
