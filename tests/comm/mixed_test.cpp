// SPDX-License-Identifier: Apache-2.0
// Four transports in one job: an MPI's launcher starts three pretended nodes of one host, of which the last has no such
// provider of libfabric. So the own rank is served by self, those of the node by shm, of the other node that has the
// provider by ofi, and of the last one by mpi.
#include "contract/bodies.hpp"
#include "one_sided_bodies.hpp"

#include <halocline/comm/messenger.hpp>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <string>

namespace {

using namespace halocline_test;

constexpr int last_node = 2;
int node_of(int rank) { return std::min(rank / 2, last_node); }

std::string expected_transport(int from, int to) {
    if (from == to) return "self";
    if (node_of(from) == node_of(to)) return "shm";
    return node_of(from) == last_node || node_of(to) == last_node ? "mpi" : "ofi";
}

const job& mixed_job() {
    static const job j = [] {
        int rank = 0;
        for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
            if (const char* text = std::getenv(variable)) rank = std::atoi(text);
        }
        setenv("HALOCLINE_NODE", ("node" + std::to_string(node_of(rank))).c_str(), 1);
        if (node_of(rank) == last_node) setenv("FI_PROVIDER", "sockets", 1); // libfabric then has no other
        job_options options;
        options.transports = {"shm", "ofi", "mpi"};
        options.ofi_provider = "tcp;ofi_rxm";
        options.deadline = std::chrono::seconds(30);
        return job::from_environment(options);
    }();
    return j;
}

TEST(Mixed, TheFirstTransportThatReachesAPeerServesIt) {
    const job& j = mixed_job();
    for (const rank_info& m : j.members()) {
        EXPECT_EQ(m.transport, expected_transport(j.rank(), m.rank)) << j.rank() << " to " << m.rank;
        const bool lacks = m.transport == "mpi";
        EXPECT_EQ(m.refused.find("libfabric has no provider 'tcp;ofi_rxm'") != std::string::npos, lacks) << m.refused;
    }
}

TEST(Mixed, OneSetOfChannelsHasThemAll) {
    const job& j = mixed_job();
    constexpr std::size_t bytes = 3000;
    const tape t(bytes);
    std::vector<channel_request> requests;
    for (int peer = 0; peer < j.ranks(); ++peer)
        requests.push_back(
            {peer, static_cast<std::uint32_t>(peer), static_cast<std::uint32_t>(j.rank()), bytes, bytes, "x"});
    channel_set set(j, requests, {"mixed", ""});
    constexpr std::uint64_t epochs = 200;

    int wrong = 0;
    for (std::uint64_t k = 1; k <= epochs; ++k) {
        fill_and_send(set, t, j.rank(), k);
        wait_for(j, set, k);
        wrong += wrong_messages(set, t, k);
    }

    EXPECT_EQ(wrong, 0);
    for (const lane_counts& lane : set.counts(epochs)) {
        const auto peers = std::ranges::count(j.members(), lane.transport, &rank_info::transport);
        EXPECT_EQ(lane.messages, static_cast<std::uint64_t>(peers) * epochs) << lane.transport;
    }
}

TEST(Mixed, SumsAndOneSided) {
    const job& j = mixed_job();
    expect_ring_delivers(j, 100'000, 20);
    expect_sums_equal_serial(j);
    expect_epochs(j, 50);
    expect_puts_of_any_size_arrive(j);
    expect_calls_in_order(j, 50);
}

TEST(Mixed, MessagesOfAnySizeFromAnyRank) {
    const job& j = mixed_job();
    const auto ranks = static_cast<std::size_t>(j.ranks());
    messenger m(j);
    int tag = 0; // of its size: a fast rank's next message must not meet a receive of this one
    for (const std::size_t bytes : std::initializer_list<std::size_t>{0, 8, 2000, 300'000}) {
        ++tag;
        const std::vector<std::byte> out(bytes, static_cast<std::byte>(j.rank() + 1));
        std::vector<std::vector<std::byte>> in(ranks, std::vector<std::byte>(bytes));
        std::vector<message_request> receives(ranks), sends(ranks);
        for (std::size_t r = 0; r < ranks; ++r) m.irecv(receives[r], in[r], any_source, tag);
        for (std::size_t r = 0; r < ranks; ++r) m.isend(sends[r], out, static_cast<int>(r), tag);
        ASSERT_EQ(m.wait_all(receives), status::ok) << m.pending();
        ASSERT_EQ(m.wait_all(sends), status::ok) << m.pending();

        for (std::size_t r = 0; r < ranks; ++r) {
            const auto sender = static_cast<std::byte>(receives[r].info().source + 1);
            EXPECT_TRUE(std::ranges::all_of(in[r], [&](std::byte b) { return b == sender; })) << bytes << " bytes";
        }
    }
}

} // namespace
