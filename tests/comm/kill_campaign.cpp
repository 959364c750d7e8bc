// SPDX-License-Identifier: Apache-2.0
// Kills random ranks at random moments (set-up, exchange), and measures how long the survivors take to name them.
//   comm_kill_campaign TRANSPORT[+setup|+large|+messages|+puts] ROUNDS[/SURVIVORS] LAUNCHER...
// e.g. comm_kill_campaign ofi-tcp 1000 bin/halocline-run: amid messages of a plan and sums; +setup: while plans are
// made; +large, +messages, +puts: large messages of a plan, matched ones, puts.
// 1000/1: one survivor that reports is enough, for launchers that may end the other one first.
// Fails if a survivor of any round is silent, names another rank, or takes more than 8 s. scripts/kill-campaign.sh runs
// it over every transport.
#include "contract/messages.hpp"
#include "named_transport.hpp"

#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/messenger.hpp>
#include <halocline/comm/one_sided.hpp>
#include <halocline_test/run_command.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace {

using namespace halocline_test;

constexpr int ranks = 3;

/// The same clock in every process of this host.
long long now_ns() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

constexpr std::size_t large = 1 << 20;

void exchange_large_plan(const job& j) {
    channel_set set(j, ring(j, 32 * large), {"ring", ""});
    for (std::uint64_t k = 1; k <= 5; ++k) {
        set.for_each([&](auto& channel) { channel.send(k, ticks()); });
        wait_for(j, set, k);
    }
}

void exchange_plan(const job& j) {
    channel_set set(j, ring(j, 5000), {"ring", ""});
    global_sum sum(j, 4);
    double values[3]{};
    for (std::uint64_t k = 1; k <= 20; ++k) {
        set.for_each([&](auto& channel) { channel.send(k, ticks()); });
        wait_for(j, set, k);
        sum.sum_or_throw(values);
    }
}

void make_plans(const job& j) {
    for (int k = 0; k < 20; ++k) channel_set(j, ring(j, 5000), {"ring", ""});
}

void exchange_messages(const job& j) {
    messenger m(j);
    const std::vector<std::byte> out(large);
    std::vector<std::byte> in(large);
    for (int k = 1; k <= 20; ++k) {
        message_request send;
        m.isend(send, out, (j.rank() + 1) % j.ranks(), 1);
        status s = m.recv(in, any_source, 1);
        if (s == status::ok) s = m.wait(send);
        if (s != status::ok) j.fail(s, m.pending());
    }
}

void exchange_puts(const job& j) {
    const std::vector<int> near{(j.rank() + 1) % j.ranks(), (j.rank() + j.ranks() - 1) % j.ranks()};
    exposure e(j, near, large, {"large puts", 1});
    const std::vector<std::byte> out(large);
    for (std::uint64_t k = 1; k <= 20; ++k) {
        status s = e.put_signal(0, out, 0, 0);
        if (s == status::ok) s = e.wait_signals(0, k);
        if (s != status::ok) j.fail(s, e.pending());
    }
}

/// What ranks report about themselves. Not through their launcher, which may end before it has passed it on, but
/// through a named pipe.
class reports {
  public:
    reports() {
        if (mkfifo(name_.c_str(), 0600) == 0) pipe_ = open(name_.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
        if (pipe_ < 0) std::perror(name_.c_str());
    }
    ~reports() { ::close(pipe_); }
    reports(const reports&) = delete;
    reports& operator=(const reports&) = delete;
    [[nodiscard]] const std::string& name() const { return name_; }

    /// The next line; "" if none arrives within that time.
    std::string line(std::chrono::milliseconds longest) {
        const auto end = std::chrono::steady_clock::now() + longest;
        while (true) {
            if (const auto at = came_.find('\n'); at != std::string::npos) {
                std::string first = came_.substr(0, at);
                came_.erase(0, at + 1);
                return first;
            }
            char text[4096];
            if (const ssize_t n = read(pipe_, text, sizeof text); n > 0) {
                came_.append(text, static_cast<std::size_t>(n));
            } else if (std::chrono::steady_clock::now() >= end) {
                return "";
            } else {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
        }
    }

  private:
    scratch_folder scratch_;
    std::string name_ = scratch_ / "reports", came_;
    int pipe_ = -1;
};

template <class... Values>
void tell(const char* pipe_name, const char* format, Values... values) {
    char text[2048];
    const int n = std::min<int>(std::snprintf(text, sizeof text, format, values...), sizeof text - 2);
    text[n] = '\n';
    const int pipe = open(pipe_name, O_WRONLY | O_CLOEXEC);
    if (write(pipe, text, static_cast<std::size_t>(n) + 1) != n + 1) std::perror(pipe_name); // in one write
    ::close(pipe);
}

int be_rank(std::string_view transport, std::string_view work, const char* pipe_name) {
    dup2(open(pipe_name, O_WRONLY | O_CLOEXEC), STDERR_FILENO); // for what its watchdog reports
    try {
        const job j = job::from_environment(options_over(transport));
        tell(pipe_name, "pid %d %d", j.rank(), static_cast<int>(getpid()));
        for (;;) { // until this rank is killed, or another is
            work == "setup"      ? make_plans(j)
            : work == "large"    ? exchange_large_plan(j)
            : work == "messages" ? exchange_messages(j)
            : work == "puts"     ? exchange_puts(j)
                                 : exchange_plan(j);
            j.barrier();
        }
    } catch (const rank_failure& e) {
        tell(pipe_name, "failure %lld %s", now_ns(), e.what());
        return 3;
    } catch (const std::exception& e) {
        tell(pipe_name, "not a rank_failure: %s", e.what());
        return 4;
    }
}

/// MPICH's launcher ends all ranks at once if one was ended by a signal, whatever its options. So it is shown a process
/// that ends with an exit code.
int be_rank_behind_a_process(std::string_view transport, std::string_view work, const char* pipe_name) {
    const pid_t child = fork();
    if (child == 0) std::exit(be_rank(transport, work, pipe_name));
    std::signal(SIGUSR1, SIG_IGN); // the launcher's notice that another rank ended
    int how = 0;
    waitpid(child, &how, 0);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 9;
}

constexpr std::chrono::milliseconds patience(30'000);

/// The ranks' pids, as they announce them; 0 for those that don't.
std::array<pid_t, ranks> announced(reports& said) {
    std::array<pid_t, ranks> pids{};
    for (int seen = 0; seen < ranks;) {
        const std::string text = said.line(patience);
        if (text.empty()) {
            std::fputs("the job did not start\n", stderr);
            break;
        }
        int rank = -1, pid = -1;
        if (std::sscanf(text.c_str(), "pid %d %d", &rank, &pid) == 2 && rank >= 0 && rank < ranks) {
            pids[rank] = pid;
            ++seen;
        }
    }
    return pids;
}

/// The report of a survivor, or of its watchdog: who it is and whom it lost.
struct report {
    int rank = -1, pid = -1, culprit = -1, culprit_pid = -1;
};
std::optional<report> report_in(const std::string& text) {
    const char* words = std::strstr(text.c_str(), "rank ");
    report r;
    if (words == nullptr ||
        std::sscanf(words, "rank %d (pid %d): rank %d (pid %d", &r.rank, &r.pid, &r.culprit, &r.culprit_pid) != 4 ||
        r.rank < 0 || r.rank >= ranks)
        return {};
    return r;
}

/// Has the launcher ended? It remains to be waited for.
bool has_ended(pid_t launcher) {
    siginfo_t how{};
    waitid(P_PID, static_cast<id_t>(launcher), &how, WEXITED | WNOHANG | WNOWAIT);
    return how.si_pid == launcher;
}

/// Number of survivors that named the victim; -1: one named another rank, or took too long. Adds the milliseconds from
/// the kill to each report.
int survivors_that_name(int victim, const std::array<pid_t, ranks>& pids, pid_t launcher, long long killed,
                        reports& said, std::vector<double>& times) {
    std::array<bool, ranks> heard{}; // the rank itself or, if it can't, its watchdog
    const auto end = std::chrono::steady_clock::now() + patience;
    int told = 0;
    for (bool over = false; told < ranks - 1 && !over;) {
        over = has_ended(launcher) || std::chrono::steady_clock::now() > end;
        const std::string text = said.line(std::chrono::milliseconds(100)); // read after that check: complete
        if (text.empty()) continue;
        over = false;
        const std::optional<report> r = report_in(text);
        if (!r) {
            std::fprintf(stderr, "%s\n", text.c_str());
            continue;
        }
        const auto who = static_cast<std::size_t>(r->rank), dead = static_cast<std::size_t>(victim);
        if (r->culprit != victim || r->culprit_pid != pids[dead] || r->pid != pids[who]) {
            std::fprintf(stderr, "rank %d (pid %d) was killed: %s\n", victim, pids[dead], text.c_str());
            return -1;
        }
        if (std::exchange(heard[who], true)) continue; // its watchdog may have reported before
        ++told;
        long long at = 0;
        if (std::sscanf(text.c_str(), "failure %lld", &at) != 1) at = now_ns();
        times.push_back(static_cast<double>(at - killed) * 1e-6);
        if (times.back() >= 8000) return -1;
    }
    return told;
}

/// Runs a job and kills one of its ranks. True if enough survivors name it; otherwise prints to stderr what went wrong.
bool round(std::vector<char*> command, int enough, reports& said, std::mt19937& random, std::vector<double>& times) {
    const pid_t launcher = fork();
    if (launcher == 0) {
        command.push_back(nullptr);
        execvp(command[0], command.data());
        _exit(127);
    }
    const std::array<pid_t, ranks> pids = announced(said);
    const int victim = static_cast<int>(random() % ranks);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    const pid_t pid = pids[victim];
    const long long killed = now_ns();
    int told = -1;
    if (pid > 0) {
        kill(pid, SIGKILL);
        told = survivors_that_name(victim, pids, launcher, killed, said, times);
    }
    if (told != ranks - 1) kill(launcher, SIGTERM); // which ends the ranks it started
    // An MPI may complain in a loop: nobody must wait for room in the pipe.
    while (waitpid(launcher, nullptr, WNOHANG) == 0) (void)said.line(std::chrono::milliseconds(100));
    if (told >= 0 && told < enough)
        std::fprintf(stderr, "rank %d was killed, %d of %d survivors said so\n", victim, told, ranks - 1);
    return told >= enough;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const std::string_view name = argv[1], transport = name.substr(0, name.find('+'));
    const std::string_view work = transport == name ? "plan" : name.substr(transport.size() + 1);
    const bool over_mpi = transport_named(transport).transport == "mpi";
    if (work != "plan" && work != "setup" && work != "large" && work != "messages" && work != "puts") return 2;
    if (std::string(argv[2]) == "rank") {
        if (argc < 4) return 2;
        return (over_mpi ? be_rank_behind_a_process : be_rank)(transport, work, argv[3]);
    }

    std::vector<char*> command(argv + 3, argv + argc);
    std::string self = std::filesystem::read_symlink("/proc/self/exe"), n = std::to_string(ranks);
    char count[] = "-n", as_rank[] = "rank";
    reports said;
    std::string pipe_name = said.name();
    for (char* word : {count, n.data(), self.data(), argv[1], as_rank, pipe_name.data()}) command.push_back(word);
    std::mt19937 random(11);
    std::vector<double> times;
    const int rounds = std::atoi(argv[2]);
    const char* const slash = std::strchr(argv[2], '/');
    const int enough = slash != nullptr ? std::atoi(slash + 1) : ranks - 1;
    int bad = 0;
    for (int i = 0; i < rounds; ++i) bad += !round(command, enough, said, random, times);
    std::sort(times.begin(), times.end());
    const auto at = [&](double part) {
        return times.empty() ? 0.0 : times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))];
    };
    std::printf("%s: %d of %d kills named by %s; ms: median %.1f, p99 %.1f, max %.1f\n", argv[1], rounds - bad, rounds,
                slash != nullptr ? "survivors" : "all survivors", at(0.5), at(0.99), at(1));
    return bad != 0 || rounds < 1;
}
