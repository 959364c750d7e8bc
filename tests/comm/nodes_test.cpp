// SPDX-License-Identifier: Apache-2.0
// Jobs over several nodes: parts of this host that are declared to be nodes (HALOCLINE_NODE), two ranks each.
#include "contract/bodies.hpp"
#include "job/job_core.hpp"
#include "large_mail.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/processors.hpp>

#include <halocline_test/allocation_counter.hpp>
#include <halocline_test/one_core.hpp>

#include <chrono>
#include <cstdlib>
#include <thread>

namespace {

using namespace halocline;
using namespace halocline_test;

int rank_in_job() { return std::atoi(std::getenv("HALOCLINE_RANK")); }
int node_of(int rank) { return rank / 2; }

job_options over(std::vector<std::string> transports) {
    setenv("HALOCLINE_NODE", ("node" + std::to_string(node_of(rank_in_job()))).c_str(), 1);
    job_options options;
    options.transports = std::move(transports);
    options.ofi_provider = "tcp;ofi_rxm";
    return options;
}

TEST(Nodes, SharedMemoryWithinLibfabricBetween) {
    const job j = job::from_environment(over({"shm", "ofi"}));

    for (const rank_info& m : j.members()) {
        const bool here = node_of(m.rank) == node_of(j.rank());
        EXPECT_EQ(m.transport, m.rank == j.rank() ? "self" : here ? "shm" : "ofi");
        EXPECT_EQ(m.refused.find("is on another node") != std::string::npos, !here) << m.refused;
        EXPECT_NE(m.host.find("/node" + std::to_string(node_of(m.rank))), std::string::npos) << m.host;
    }
    expect_ring_delivers(j, 200, 500);
    expect_ring_delivers(j, 1 << 20, 5);
    expect_sums_equal_serial(j);
}

/// A window's two ranks can't measure alone, so what it does must not depend on whether the job has other nodes.
TEST(Nodes, CostsAreKnownAtTheStartWhereAnyTwoRanksShareMemory) {
    {
        const job j = job::from_environment(over({"shm", "ofi"}));
        EXPECT_TRUE(j.core().measured.has_value());
    }
    const job apart = job::from_environment(over({"ofi"}));
    EXPECT_FALSE(apart.core().measured.has_value());
}

/// Nodes of one kernel, such as containers, share its cores: ranks wait like ranks that outnumber them.
TEST(Nodes, OfOneKernelCountItsCoresTogether) {
    job_options options = over({"ofi"});
    setenv("HALOCLINE_NODE", std::getenv("HALOCLINE_RANK"), 1);
    const std::vector<int> allowed = usable_processors();
    ASSERT_NO_FATAL_FAILURE(bind_to_first_core());
    {
        const job j = job::from_environment(options);
        EXPECT_FALSE(j.core().spin.has_own_core());
        expect_ring_delivers(j, 200, 50);
    }
    bind_to(allowed);
}

/// Set-up mail of a rank that is ahead is not taken in by a rank that waits between start and finish.
TEST(Nodes, MailOfARankThatIsAheadIsLeftWhereItIs) {
    job_options options = over({"ofi"});
    setenv("HALOCLINE_NODE", std::getenv("HALOCLINE_RANK"), 1);
    const job j = job::from_environment(options);
    std::vector<channel_request> ends; // rank 1 has none
    if (j.rank() == 0 || j.rank() == 2) ends.push_back({2 - j.rank(), 0, 0, 8, 8, "late"});
    channel_set set(j, ends, {"late", ""});
    j.barrier();
    if (j.rank() == 2) std::this_thread::sleep_for(std::chrono::milliseconds(300)); // rank 1's mail has arrived by then
    if (!ends.empty()) {
        const std::uint64_t made = allocations_in([&] {
            set.for_each([](auto& c) { c.send(1, ticks()); });
            EXPECT_EQ(set.wait(1), status::ok);
        });
        EXPECT_EQ(made, 0U);
    }

    const std::vector<std::string> all = j.gather(std::string(1000, static_cast<char>('0' + j.rank())));

    for (int r = 0; r < j.ranks(); ++r) EXPECT_EQ(all[r], std::string(1000, static_cast<char>('0' + r)));
}

TEST(Nodes, LargeSetUpMessagesCross) {
    const job j = job::from_environment(over({"shm", "ofi"}));
    expect_large_messages_cross(j);
}

/// More mail than its kernel has room for waits for it meanwhile.
TEST(Nodes, ARankThatDoesNotReadItsMailForLongerThanTheLinkTimeoutIsNotDead) {
    job_options options = over({"ofi"});
    options.link_timeout = std::chrono::seconds(2);
    setenv("HALOCLINE_NODE", std::getenv("HALOCLINE_RANK"), 1);
    const job j = job::from_environment(options);
    if (j.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3500));

    expect_large_messages_cross(j);
}

TEST(Nodes, WithoutATransportBetweenThemAreOneErrorEverywhere) {
    try {
        const job j = job::from_environment(over({"shm"}));
        FAIL();
    } catch (const input_error& e) {
        const std::string text = e.what();
        EXPECT_NE(text.find("no transport of [shm] reaches rank 2 (pid "), std::string::npos) << text;
        EXPECT_NE(text.find("is on another node"), std::string::npos) << text;
    }
}

TEST(Nodes, AWrongNetworkIsOneErrorEverywhere) {
    job_options options = over({"shm", "ofi"});
    options.network = "nosuch0";
    try {
        const job j = job::from_environment(options);
        FAIL();
    } catch (const input_error& e) {
        EXPECT_NE(std::string(e.what()).find("network 'nosuch0'"), std::string::npos) << e.what();
    }
}

TEST(Nodes, OneThatGivesUpIsHeardOnTheOthers) {
    const job j = job::from_environment(over({"shm", "ofi"}));
    if (j.rank() == 1) {
        j.barrier();
        j.abort("rank 1 has had enough");
        return;
    }
    try {
        j.barrier();
        j.barrier();
        FAIL();
    } catch (const rank_failure& e) {
        EXPECT_EQ(e.culprit(), 1);
        EXPECT_EQ(e.why(), status::aborted);
        EXPECT_NE(std::string(e.what()).find("rank 1 has had enough"), std::string::npos) << e.what();
    }
}

} // namespace
