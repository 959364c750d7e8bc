// SPDX-License-Identifier: Apache-2.0
// Ten thousand random plans per run, on 1 to 12 ranks: what is drawn of them stands in random_case.hpp, what is done
// with them in random_exchanges.hpp, what must occur how often in random_features.hpp. A quarter of the cases is the
// same in every run; the seed of the others is new each time, unless HALOCLINE_TEST_SEED names one.
#include "random_exchanges.hpp"

#include <chrono>
#include <cstdio>

using namespace halocline_test;

namespace {

struct share {
    int ranks, plans;
};
constexpr std::array shares{share{1, 1000}, share{2, 3000}, share{3, 1600}, share{4, 1600},
                            share{5, 600},  share{6, 1000}, share{8, 600},  share{12, 600}};

TEST(RandomPlans, GhostsEqualTheGlobalOracle) {
    comm::job_options options;
    options.transports = {"shm"};
    options.slab_bytes = 256 << 20;
    options.deadline = std::chrono::seconds(60);
    constexpr unsigned same_each_time = 20140911;
    unsigned seed = 0;
    for (const auto [ranks, plans] : shares) {
        const auto start = std::chrono::steady_clock::now();
        comm::run_threads(
            ranks,
            [&, plans = plans](const comm::job& j) {
                const unsigned drawn_now = seed_of_run(j);
                if (j.rank() == 0) seed = drawn_now;
                exchange_random_cases(j, kinds::all, same_each_time, plans / 4);
                if (!HasFailure()) exchange_random_cases(j, kinds::all, drawn_now, plans - plans / 4);
            },
            options);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        std::printf("%d ranks: %d plans in %.1f s, HALOCLINE_TEST_SEED=%u\n", ranks, plans, took.count(), seed);
        if (HasFailure()) return;
    }

    if (std::getenv("HALOCLINE_TEST_CASE") != nullptr) return; // one case has no distribution
    features_seen().print();
    EXPECT_GE(features_seen().plans(), 10'000);
    EXPECT_EQ(features_seen().rare(), "") << "the generator does this too rarely";
}

} // namespace
