// SPDX-License-Identifier: Apache-2.0
#include "contender.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <sys/time.h>
#include <thread>

namespace halocline_test {
namespace {

const named_transport* chosen = nullptr;
int ranks_as_threads = 0;

/// That are sure to be done, on two ranks with a core each.
std::uint64_t steps_per_second(const named_transport& t) {
    if (t.transport == "verbs") return 300; // that is in an emulated machine
    if (t.name == "mpi-one-sided") return 3'000;
    if (t.name == "ofi-tagged") return 5'000;
    if (t.transport == "ofi") return 10'000;
    if (t.transport == "mpi") return 20'000;
    return 100'000;
}

/// System calls are interrupted and not restarted.
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

job_options options_under_test() { return options_over(chosen->name); }

std::uint64_t steps(std::uint64_t most, int ranks) {
    const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    std::uint64_t can = steps_per_second(*chosen);
    if (ranks > std::min(2, cores)) can /= 10 * static_cast<std::uint64_t>(ranks);
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    can /= 10;
#endif
    return std::max<std::uint64_t>(20, std::min(most, can));
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
    const int failed = RUN_ALL_TESTS();
    const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
    if (tests.test_to_run_count() == 0 && !testing::GTEST_FLAG(list_tests)) {
        std::fprintf(stderr, "no test matches --gtest_filter=%s\n", testing::GTEST_FLAG(filter).c_str());
        return 1;
    }
    return failed;
}
