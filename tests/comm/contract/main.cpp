// SPDX-License-Identifier: Apache-2.0
#include "contender.hpp"

#include <gtest/gtest.h>
#include <halocline/comm/processors.hpp>
#include <halocline_test/run_tests.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <limits>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <sys/time.h>
#include <thread>

namespace halocline_test {
namespace {

const named_transport* chosen = nullptr;
int ranks_as_threads = 0;

/// What ranks that share cores are sure to do in a second, if there were two of them with a core each.
std::uint64_t steps_per_second(const named_transport& t) {
    if (t.name == "mpi-one-sided") return 3'000;
    if (t.name == "ofi-tagged") return 5'000;
    if (t.transport == "ofi") return 10'000;
    if (t.transport == "mpi") return 20'000;
    return 100'000;
}

/// How many steps a test may ask for here, and the reason for the limit.
struct step_limit {
    std::uint64_t steps = std::numeric_limits<std::uint64_t>::max();
    std::string why;
};
step_limit limit_of_steps(int ranks) {
    const int cores = static_cast<int>(halocline::comm::usable_processors().size());
    step_limit limit;
    if (chosen->transport == "verbs")
        limit = {ranks > 2 ? 20u : 300u, "the device may be an emulated one"};
    else if (ranks > cores)
        limit = {steps_per_second(*chosen) / (10 * static_cast<std::uint64_t>(ranks)),
                 std::to_string(ranks) + " ranks on " + std::to_string(cores) + " processors"};
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    limit = {std::min<std::uint64_t>(100'000, limit.steps) / 10, "a sanitizer; " + limit.why};
#endif
    limit.steps = std::max<std::uint64_t>(20, limit.steps);
    return limit;
}

/// Prints each text only once.
void say(const std::string& text) {
    static std::mutex one_at_a_time;
    static std::set<std::string> said;
    const std::lock_guard lock(one_at_a_time);
    if (said.insert(text).second) std::printf("[  FEWER   ] %s\n", text.c_str());
}

/// Makes signals interrupt system calls, which are not restarted.
void signal_a_thousand_times_a_second() {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    sigaction(SIGALRM, &action, nullptr);
    const itimerval every{{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &every, nullptr);
}

} // namespace

const named_transport& under_test() { return *chosen; }
int thread_ranks() { return ranks_as_threads; }

job_options options_under_test() {
    job_options options = options_over(chosen->name);
    const auto* const test = testing::UnitTest::GetInstance()->current_test_suite();
    if (test != nullptr && std::string_view(test->name()) == "Large")
        options.deadline = std::chrono::seconds(200); // a loaded machine writes 2 GiB in half a minute
    return options;
}

std::uint64_t steps(std::uint64_t most, const job& j) {
    const step_limit limit = limit_of_steps(j.ranks());
    if (limit.steps >= most) return most;
    if (j.rank() == 0)
        say(std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + ": " +
            std::to_string(limit.steps) + " steps instead of " + std::to_string(most) + ": " + limit.why);
    return limit.steps;
}

void on_every_rank(const std::function<void(const job&)>& body) {
    const auto then_part = [&](const job& j) {
        body(j);
        j.barrier();
    };
    if (ranks_as_threads > 0) {
        run_threads(ranks_as_threads, then_part, options_under_test());
    } else {
        then_part(job::from_environment(options_under_test()));
    }
}

} // namespace halocline_test

int main(int argc, char** argv) {
    using namespace halocline_test;
    testing::InitGoogleTest(&argc, argv);
    for (int i = 1; i < argc; ++i) {
        std::string_view word = argv[i];
        if (word == "signals") {
            signal_a_thousand_times_a_second();
            continue;
        }
        if (word.starts_with("threads=")) {
            word.remove_prefix(8);
            std::from_chars(word.data(), word.data() + word.size(), ranks_as_threads);
            continue;
        }
        chosen = &transport_named(word);
    }
    if (chosen == nullptr) {
        std::fprintf(stderr, "usage: comm_contract_test TRANSPORT [threads=N] [signals]\n");
        return 2;
    }
    return run_tests(skips::of_some_runs);
}
