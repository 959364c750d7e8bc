// SPDX-License-Identifier: Apache-2.0
// Kills of random ranks at random moments (set-up, exchange, sum), and how long the survivors take to name them.
//   comm_kill_campaign TRANSPORT ROUNDS LAUNCHER...      e.g. comm_kill_campaign ofi-tcp 1000 bin/halocline-run
// Fails if a survivor of any round is silent, names another rank, or takes more than 8 s. scripts/kill-campaign.sh runs
// it over every transport.
#include "contract/contender.hpp"
#include "contract/messages.hpp"

#include <halocline/comm/global_sum.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace halocline_test;

constexpr int ranks = 3;

/// The same clock in every process of this host.
long long now_ns() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

int be_rank(const contender& c) {
    try {
        job_options options;
        options.transports = {std::string(c.transport)};
        options.ofi_provider = c.provider;
        const job j = job::from_environment(options);
        std::printf("pid %d %d\n", j.rank(), static_cast<int>(getpid()));
        std::fflush(stdout);
        for (;;) { // until it is killed, or another is
            channel_set set(j, ring(j, 5000), {"ring", ""});
            global_sum sum(j, 4);
            double values[3]{};
            for (std::uint64_t k = 1; k <= 20; ++k) {
                set.for_each([&](auto& channel) { channel.send(k, ticks()); });
                wait_for(j, set, k);
                if (const status s = sum(values); s != status::ok) j.fail(s, sum.pending());
            }
            j.barrier();
        }
    } catch (const rank_failure& e) {
        std::printf("failure %lld %d %d %s\n", now_ns(), e.culprit(), e.pid(), e.what());
        std::fflush(stdout);
        return 3;
    } catch (const std::exception& e) {
        std::printf("not a rank_failure: %s\n", e.what());
        std::fflush(stdout);
        return 4;
    }
}

/// Milliseconds from the kill to each survivor's report.  Err: a text on stderr and false.
bool round(std::vector<char*> command, std::mt19937& random, std::vector<double>& times) {
    int ends[2];
    if (pipe(ends) != 0) return false;
    const pid_t launcher = fork();
    if (launcher == 0) {
        dup2(ends[1], STDOUT_FILENO);
        ::close(ends[0]);
        ::close(ends[1]);
        command.push_back(nullptr);
        execvp(command[0], command.data());
        _exit(127);
    }
    ::close(ends[1]);
    FILE* output = fdopen(ends[0], "r");
    char text[2048];
    pid_t pids[ranks]{};
    for (int seen = 0; seen < ranks && std::fgets(text, sizeof text, output) != nullptr;) {
        int rank = -1, pid = -1;
        if (std::sscanf(text, "pid %d %d", &rank, &pid) == 2 && rank >= 0 && rank < ranks) {
            pids[rank] = pid;
            ++seen;
        }
    }
    const int victim = static_cast<int>(random() % ranks);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    const long long killed = now_ns();
    if (pids[victim] > 0) kill(pids[victim], SIGKILL);

    int told = 0;
    bool right = pids[victim] > 0;
    while (std::fgets(text, sizeof text, output) != nullptr) {
        long long at = 0;
        int culprit = -1, pid = -1;
        if (std::sscanf(text, "failure %lld %d %d", &at, &culprit, &pid) != 3) {
            std::fputs(text, stderr);
            continue;
        }
        ++told;
        times.push_back(static_cast<double>(at - killed) * 1e-6);
        right = right && culprit == victim && pid == pids[victim] && times.back() < 8000;
        if (!right) std::fprintf(stderr, "rank %d (pid %d) was killed: %s", victim, pids[victim], text);
    }
    std::fclose(output);
    waitpid(launcher, nullptr, 0);
    if (told != ranks - 1)
        std::fprintf(stderr, "rank %d was killed, %d of %d survivors said so\n", victim, told, ranks - 1);
    return right && told == ranks - 1;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const auto c =
        std::find_if(std::begin(known), std::end(known), [&](const contender& k) { return k.name == argv[1]; });
    if (c == std::end(known)) return 2;
    if (std::string(argv[2]) == "rank") return be_rank(*c);

    std::vector<char*> command(argv + 3, argv + argc);
    std::string self = std::filesystem::read_symlink("/proc/self/exe"), n = std::to_string(ranks);
    char count[] = "-n", last[] = "rank";
    for (char* word : {count, n.data(), self.data(), argv[1], last}) command.push_back(word);
    std::mt19937 random(11);
    std::vector<double> times;
    const int rounds = std::atoi(argv[2]);
    int bad = 0;
    for (int i = 0; i < rounds; ++i) bad += !round(command, random, times);
    std::sort(times.begin(), times.end());
    const auto at = [&](double part) {
        return times.empty() ? 0.0 : times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))];
    };
    std::printf("%s: %d of %d kills named by all survivors; ms: median %.1f, p99 %.1f, max %.1f\n", argv[1],
                rounds - bad, rounds, at(0.5), at(0.99), at(1));
    return bad != 0 || rounds < 1;
}
