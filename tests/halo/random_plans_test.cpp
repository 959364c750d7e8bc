// SPDX-License-Identifier: Apache-2.0
// Ten thousand random plans per run, appended and padded in turn: extents, widths, cuts, orders, lane widths, parities,
// corners, several fields, bindings, fields inside and outside the slab, reverses; one in fifty with large messages.
// The seed is new each time: HALOCLINE_TEST_SEED repeats a run.
#include "padded_oracle.hpp"

#include <cstdio>
#include <cstdlib>

using namespace halocline_test;

namespace {

unsigned seed() {
    static const unsigned value = [] {
        const char* given = std::getenv("HALOCLINE_TEST_SEED");
        return given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10)) : std::random_device()();
    }();
    return value;
}

struct share {
    int ranks, plans;
};
class RandomPlans : public testing::TestWithParam<share> {};

TEST_P(RandomPlans, GhostsEqualTheGlobalOracle) {
    const auto [ranks, plans] = GetParam();
    std::printf("HALOCLINE_TEST_SEED=%u\n", seed());
    comm::job_options options;
    options.transports = {"shm"};
    options.slab_bytes = 256 << 20;
    options.deadline = std::chrono::seconds(60);

    comm::run_threads(
        ranks,
        [&, ranks = ranks, plans = plans](const comm::job& j) {
            exchange_random_cases(j, seed() + static_cast<unsigned>(ranks), plans / 2, 2);
            exchange_random_padded_cases(j, seed() - static_cast<unsigned>(ranks), plans / 2, 2);
        },
        options);

    std::printf("messages of 64 KiB and more:");
    std::uint64_t large = 0;
    for (const halo::path p :
         {halo::path::automatic, halo::path::direct, halo::path::streamed, halo::path::joint, halo::path::packed}) {
        const std::uint64_t count = large_messages_seen().take(p);
        std::printf(" %s %llu", std::string(to_string(p)).c_str(), static_cast<unsigned long long>(count));
        large += count;
    }
    EXPECT_GT(large, static_cast<std::uint64_t>(plans / 400)) << "the generator doesn't do what it says";
    const std::uint64_t most = large_messages_seen().most_bytes.exchange(0);
    std::printf("; the largest has %llu KiB\n", static_cast<unsigned long long>(most / 1024));
}

INSTANTIATE_TEST_SUITE_P(Threads, RandomPlans,
                         testing::Values(share{1, 3600}, share{2, 3600}, share{3, 1200}, share{4, 1200}, share{6, 400}),
                         [](const auto& chosen) { return "r" + std::to_string(chosen.param.ranks); });

} // namespace
