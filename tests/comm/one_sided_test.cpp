// SPDX-License-Identifier: Apache-2.0
// One-sided communication between processes, over the transport that the argument names (named_transport.hpp), or
// mixed: two nodes on one host, shm within and libfabric between them.
#include "named_transport.hpp"
#include "one_sided_bodies.hpp"

#include <halocline_test/run_tests.hpp>

#include <cstdlib>

namespace {

using namespace halocline_test;

std::string transport;

job over_transport() {
    if (transport != "mixed") return job::from_environment(options_over(transport));
    const char* rank = std::getenv("HALOCLINE_RANK");
    setenv("HALOCLINE_NODE", rank != nullptr && std::atoi(rank) % 2 != 0 ? "odd" : "even", 1);
    job_options options = options_over("ofi-tcp");
    options.transports = {"shm", "ofi"};
    return job::from_environment(options);
}

/// Fewer over a network, where an epoch takes longer.
std::uint64_t steps(const job& j, std::uint64_t alone) {
    if (transport == "shm") return alone;
    return j.ranks() <= 2 ? alone / 5 : alone / 20;
}

TEST(OneSided, Epochs) {
    const job j = over_transport();
    expect_epochs(j, steps(j, 1000));
}
TEST(OneSided, OneWayEpochs) {
    const job j = over_transport();
    expect_one_way_epochs(j, steps(j, 1000));
}
TEST(OneSided, SignalsFollowTheirBytes) { expect_signals_follow_their_bytes(over_transport()); }
TEST(OneSided, PutsOfAnySizeArrive) { expect_puts_of_any_size_arrive(over_transport()); }
TEST(OneSided, LargePutsGoStraightIntoTheExposedMemory) {
    const job j = over_transport();
    const bool writes =
        transport == "verbs" || (transport.starts_with("ofi") && transport != "ofi-tagged") || transport == "mixed";
    const bool into_socket = transport == "ofi-tcp" || transport == "ofi-net" || transport == "mixed";
    expect_large_puts_go_straight(j, writes, into_socket);
}
TEST(OneSided, LargePutsWithASignalArriveBeforeIt) { expect_signals_follow_large_puts(over_transport()); }
TEST(OneSided, MemoryIsGivenBackWhenBothEndsHaveLeft) {
    const job j = over_transport();
    const std::vector<int> near = all_ranks(j);
    constexpr std::size_t size = 1 << 20;
    const std::size_t before = j.memory().used();
    for (int i = 0; i < 20; ++i) {
        const exposure e(j, near, size, {"again and again"});
        j.barrier();
        EXPECT_LT(j.memory().used(), before + 6 * size) << "blocks stay";
    }
}
TEST(OneSided, CallsInOrder) {
    const job j = over_transport();
    expect_calls_in_order(j, steps(j, 500));
}
TEST(OneSided, MixedJobsHaveBoth) {
    if (transport != "mixed") GTEST_SKIP() << "not a mixed job";
    EXPECT_EQ(over_transport().transport(), "shm+ofi");
}
TEST(OneSided, BadInputIsTold) { expect_bad_one_sided_input_is_told(over_transport()); }
TEST(OneSided, LeavingEndsWaits) { expect_leaving_ends_waits(over_transport()); }

} // namespace

int main(int argc, char** argv) {
    testing::InitGoogleTest(&argc, argv);
    transport = argc > 1 ? argv[1] : "shm";
    return halocline_test::run_tests(halocline_test::skips::of_some_runs);
}
