// SPDX-License-Identifier: Apache-2.0
// Several transports in one job: whichever serves a peer, plans, sums, one-sided communication and messages work.
// Included by one test each, which defines the job.
#pragma once

#include "contract/bodies.hpp"
#include "one_sided_bodies.hpp"

#include <halocline/comm/messenger.hpp>

#include <algorithm>
#include <initializer_list>
#include <string>

namespace halocline_test {

const job& mixed_job();
std::string expected_transport(int from, int to);
/// The error for the transport that one rank lacks, and the transport that serves its peers instead.
struct lacking {
    std::string refusal, instead;
};
lacking expected_lack();

TEST(Mixed, TheFirstTransportThatReachesAPeerServesIt) {
    const job& j = mixed_job();
    for (const rank_info& m : j.members()) {
        EXPECT_EQ(m.transport, expected_transport(j.rank(), m.rank)) << j.rank() << " to " << m.rank;
        const auto [refusal, instead] = expected_lack();
        EXPECT_EQ(m.refused.find(refusal) != std::string::npos, m.transport == instead) << m.refused;
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
    for (const transport_counts& lane : set.counts(epochs)) {
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
    int tag = 0; // one per size: a fast rank's next message must not meet a receive of this one
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

} // namespace halocline_test
