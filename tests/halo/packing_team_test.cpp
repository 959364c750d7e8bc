// SPDX-License-Identifier: Apache-2.0
// A team without a plan: its shares of messages, and where its members meet.
#include <halocline/halo/detail/packing_team.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

using namespace halocline;
using halo::packing_team;
using halo::share_of;

namespace {

TEST(ShareOf, CoversEachMessageOnce) {
    for (int members = 1; members <= 7; ++members)
        for (const std::int64_t sites : {0, 1, 2, 63, 64, 1000, 4097})
            for (const std::size_t site_bytes : {8U, 192U}) {
                std::int64_t next = 0;
                for (int i = 0; i < members; ++i) {
                    const auto [first, last] =
                        share_of(3, sites, static_cast<std::size_t>(sites) * site_bytes, {i, members});
                    if (first == last) continue;
                    EXPECT_EQ(first, next) << members << " members, " << sites << " sites";
                    next = last;
                }
                EXPECT_EQ(next, sites) << members << " members";
            }
}

TEST(ShareOf, SplitsLongMessagesEvenlyAndGivesShortOnesToOneMember) {
    for (int i = 0; i < 4; ++i) {
        const auto [first, last] = share_of(0, 1000, 4 * 4096, {i, 4});
        EXPECT_EQ(last - first, 250);
    }
    for (std::size_t message = 0; message < 8; ++message)
        for (int i = 0; i < 4; ++i) {
            const auto [first, last] = share_of(message, 1000, 4 * 4096 - 1, {i, 4});
            EXPECT_EQ(last - first, message % 4 == static_cast<std::size_t>(i) ? 1000 : 0);
        }
}

// Each member counts what it does with plain variables: the thread sanitizer would see a meeting that orders nothing.
TEST(PackingTeam, TheLastMemberSendsAndAllLeaveTogether) {
    constexpr int members = 3, exchanges = 200;
    packing_team team;
    std::vector<int> packed(members), interior(members);
    int sent = 0, received = 0;
    std::atomic<int> senders{0}, wrong{0};
    const auto member = [&](int index) {
        const auto i = static_cast<std::size_t>(index);
        for (int k = 1; k <= exchanges; ++k) {
            const auto finished = static_cast<std::uint64_t>(k - 1);
            ++packed[i];
            if (team.note_packed({index, members})) {
                for (const int n : packed) wrong += n != k; // what all have packed is here
                ++senders;
                sent = k;
                team.note_started(finished + 1);
            }
            ++interior[i];
            team.finish({index, members}, [&] {
                wrong += index != 0;
                team.await_start(finished);
                wrong += sent != k;
                received = k;
            });
            wrong += received != k;
            for (const int n : interior) wrong += n < k; // nobody leaves before all have come
            // A member that is already in the next exchange writes there: all must have looked.
            team.finish({index, members}, [] {});
        }
    };

    std::vector<std::thread> others;
    for (int i = 1; i < members; ++i) others.emplace_back(member, i);
    member(0);
    for (std::thread& t : others) t.join();

    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(senders, exchanges);
    EXPECT_FALSE(team.in_flight(exchanges));
}

TEST(PackingTeam, KnowsWhatIsInFlight) {
    packing_team team;

    EXPECT_FALSE(team.in_flight(0));
    team.note_started(1);
    EXPECT_TRUE(team.in_flight(0));
    EXPECT_FALSE(team.in_flight(1));
}

} // namespace
