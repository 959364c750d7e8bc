// SPDX-License-Identifier: Apache-2.0
// A team without a plan: its shares of messages, and where its members meet.
#include <halocline/halo/detail/packing_team.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

using namespace halocline;
using halo::packing_share;
using halo::packing_team;
using halo::share_of;

namespace {

TEST(ShareOf, CoversEachMessageOnce) {
    for (int members = 1; members <= 7; ++members)
        for (const std::int64_t sites : {0, 1, 2, 63, 64, 1000, 4097})
            for (const std::size_t site_bytes : {8U, 192U}) {
                std::int64_t next = 0;
                int sharers = 0;
                for (int i = 0; i < members; ++i) {
                    const packing_share share =
                        share_of(3, sites, static_cast<std::size_t>(sites) * site_bytes, {i, members});
                    if (share.sharers == 0) {
                        EXPECT_EQ(share.first, share.last);
                        continue;
                    }
                    EXPECT_EQ(share.first, next) << members << " members, " << sites << " sites";
                    next = share.last;
                    EXPECT_TRUE(share.sharers == 1 || share.sharers == members);
                    ++sharers;
                    EXPECT_LE(sharers, share.sharers);
                }
                EXPECT_EQ(next, sites) << members << " members";
                EXPECT_GE(sharers, 1) << "nobody would send it";
            }
}

TEST(ShareOf, SplitsLongMessagesEvenlyAndGivesShortOnesToOneMember) {
    for (int i = 0; i < 4; ++i) {
        const packing_share share = share_of(0, 1000, 4 * 4096, {i, 4});
        EXPECT_EQ(share.last - share.first, 250);
        EXPECT_EQ(share.sharers, 4);
    }
    for (std::size_t message = 0; message < 8; ++message)
        for (int i = 0; i < 4; ++i) {
            const packing_share share = share_of(message, 1000, 4 * 4096 - 1, {i, 4});
            const bool is_owner = message % 4 == static_cast<std::size_t>(i);
            EXPECT_EQ(share.last - share.first, is_owner ? 1000 : 0);
            EXPECT_EQ(share.sharers, is_owner ? 1 : 0);
        }
}

// Each member counts with plain variables, so the thread sanitizer would notice a meeting that orders nothing.
TEST(PackingTeam, EachMessageIsSentOnceByOneMemberAtATimeAndAllLeaveTogether) {
    constexpr int members = 3, exchanges = 200;
    constexpr std::size_t messages = 5; // 0 and 3 are shared, each of the others is packed by one member
    packing_team team(messages);
    std::array<std::vector<int>, messages> packed;
    packed.fill(std::vector<int>(members));
    std::vector<int> interior(members), sent(messages);
    int received = 0, senders = 0;
    std::atomic<int> wrong{0};
    const auto member = [&](int index) {
        const halo::team me{index, members};
        const auto i = static_cast<std::size_t>(index);
        for (int k = 1; k <= exchanges; ++k) {
            const auto finished = static_cast<std::uint64_t>(k - 1);
            const auto send = [&](std::uint32_t ready) {
                ++senders; // not atomic: one at a time
                for (std::size_t m = 0; m < messages; ++m) {
                    if ((ready >> m & 1) == 0) continue;
                    const bool shared = m % 3 == 0;
                    for (std::size_t n = 0; n < members; ++n) // everything packed is visible here
                        wrong += (shared || m % members == n) && packed[m][n] != k;
                    wrong += ++sent[m] != k;
                }
            };
            wrong += bool(team.enter(me, finished + 1, send));
            for (std::size_t m = 0; m < messages; ++m) {
                const bool shared = m % 3 == 0;
                if (!shared && m % members != i) continue;
                ++packed[m][i];
                if (team.note_packed(m, shared ? members : 1)) team.announce(std::uint32_t{1} << m, finished + 1, send);
            }
            ++interior[i];
            wrong += bool(team.finish(me, [&] {
                wrong += index != 0;
                wrong += bool(team.await_start(me, finished, [] { return false; }));
                for (const int n : sent) wrong += n != k;
                received = k;
            }));
            wrong += received != k;
            for (const int n : interior) wrong += n < k; // nobody leaves before all have come
            // A member that is already in the next exchange writes there, so all must have looked.
            wrong += bool(team.finish(me, [] {}));
        }
    };

    std::vector<std::thread> others;
    for (int i = 1; i < members; ++i) others.emplace_back(member, i);
    member(0);
    for (std::thread& t : others) t.join();

    EXPECT_EQ(wrong, 0);
    EXPECT_GE(senders, exchanges);
    EXPECT_FALSE(team.in_flight(exchanges));
}

TEST(PackingTeam, SendsNothingBeforeAllHaveComeAndThenEachMessageAtOnce) {
    packing_team team(3);
    std::vector<std::uint32_t> sent;
    const auto send = [&](std::uint32_t ready) { sent.push_back(ready); };

    EXPECT_FALSE(team.enter({0, 2}, 1, send));
    team.announce(0b001, 1, send);
    EXPECT_TRUE(sent.empty()) << "member 1 may still read the last ghosts";
    EXPECT_FALSE(team.enter({1, 2}, 1, send));
    EXPECT_EQ(sent, std::vector<std::uint32_t>{0b001});
    team.announce(0b100, 1, send);
    EXPECT_EQ(sent, (std::vector<std::uint32_t>{0b001, 0b100})) << "message 1 is not packed yet";
    EXPECT_FALSE(team.in_flight(0));
    team.announce(0b010, 1, send);
    EXPECT_EQ(sent.back(), 0b010U);
    EXPECT_TRUE(team.in_flight(0));
    EXPECT_FALSE(team.in_flight(1));
}

TEST(PackingTeam, LeavesWhatIsAnnouncedMeanwhileToTheOneThatSends) {
    packing_team team(3);
    std::vector<std::uint32_t> sent;
    EXPECT_FALSE(team.enter({0, 2}, 1, [](std::uint32_t) {}));
    EXPECT_FALSE(team.enter({1, 2}, 1, [](std::uint32_t) {}));

    team.announce(0b001, 1, [&](std::uint32_t ready) {
        sent.push_back(ready);
        if (sent.size() == 1) // as if by another member, while this one sends
            team.announce(0b110, 1, [&](std::uint32_t) { ADD_FAILURE() << "two members send"; });
    });

    EXPECT_EQ(sent, (std::vector<std::uint32_t>{0b001, 0b110}));
    EXPECT_TRUE(team.in_flight(0));
}

// As over a network, where a wait of member 0 for another plan may be in the library.
TEST(PackingTeam, LeavesTheSendingToMember0IfOnlyThatMay) {
    packing_team team(3, {}, halo::senders::member_0);
    std::vector<std::uint32_t> sent;
    const auto send = [&](std::uint32_t ready) { sent.push_back(ready); };
    const auto no_send = [](std::uint32_t) { ADD_FAILURE() << "member 1 sends"; };

    EXPECT_FALSE(team.enter({0, 2}, 1, send));
    team.announce(0b001, 1, send);
    team.send_packed({0, 2}, 1, send);
    EXPECT_TRUE(sent.empty()) << "member 1 may still read the last ghosts";
    EXPECT_FALSE(team.enter({1, 2}, 1, no_send));
    team.announce(0b010, 1, no_send);
    team.send_packed({1, 2}, 1, no_send);
    EXPECT_TRUE(sent.empty());
    team.send_packed({0, 2}, 1, send);
    EXPECT_EQ(sent, std::vector<std::uint32_t>{0b011});
    EXPECT_FALSE(team.in_flight(0));
    std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        team.announce(0b100, 1, no_send);
        EXPECT_FALSE(team.send_rest({1, 2}, 1, no_send, [] { return false; }));
    });
    EXPECT_FALSE(team.send_rest({0, 2}, 1, send, [] { return false; }));
    EXPECT_EQ(sent, (std::vector<std::uint32_t>{0b011, 0b100}));
    EXPECT_TRUE(team.in_flight(0));
    other.join();

    EXPECT_FALSE(team.enter({1, 2}, 2, no_send));
    EXPECT_FALSE(team.enter({0, 2}, 2, send));
    team.announce(0b111, 2, no_send);
    EXPECT_FALSE(team.send_rest({0, 2}, 2, send, [] { return false; }));
    EXPECT_EQ(sent.back(), 0b111U);
    EXPECT_TRUE(team.in_flight(1));
}

TEST(PackingTeam, TellsMember0WhoDoesNotStart) {
    const double limit = 0.05; // s
    packing_team team(1, halo::team_patience(std::chrono::duration<double>(limit)), halo::senders::member_0);
    const auto no_send = [](std::uint32_t) { ADD_FAILURE() << "one member is missing"; };
    EXPECT_FALSE(team.enter({0, 3}, 1, no_send));
    EXPECT_FALSE(team.enter({1, 3}, 1, no_send));

    EXPECT_FALSE(team.send_rest({0, 3}, 1, no_send, [] { return true; })) << "refused";
    const comm::team_fault fault = team.send_rest({0, 3}, 1, no_send, [] { return false; });

    ASSERT_TRUE(fault);
    EXPECT_EQ(fault.member.index, 2);
    EXPECT_STREQ(fault.what, halo::never_started);
}

TEST(PackingTeam, IsStartedWithoutMessages) {
    packing_team team(0);
    const auto send = [](std::uint32_t) { ADD_FAILURE() << "there is nothing to send"; };

    EXPECT_FALSE(team.enter({1, 2}, 1, send));
    EXPECT_FALSE(team.in_flight(0));
    EXPECT_FALSE(team.enter({0, 2}, 1, send));
    EXPECT_TRUE(team.in_flight(0));
}

TEST(RollCall, KnowsWhoIsMissing) {
    halo::roll_call call;
    for (const int index : {0, 1, 3, 47, 48, 200}) {
        EXPECT_FALSE(call.now().has(index)) << index;
        EXPECT_EQ(call.add({index, 300}).has(index), false);
        EXPECT_EQ(call.now().has(index), index < 48) << "members from 48 on are not told apart";
    }

    EXPECT_EQ(call.now().count(), 6);
    EXPECT_EQ(call.now().missing(0, 300), 2);
    EXPECT_EQ(call.now().missing(3, 300), 4);
    call.clear();
    EXPECT_EQ(call.now().count(), 0);
    for (int index = 0; index < 48; ++index) (void)call.add({index, 50});
    EXPECT_EQ(call.now().missing(0, 50), -1);
    EXPECT_EQ(call.now().missing(0, 48), -1) << "all are there";
    call.clear();
    for (int index = 0; index < 3; ++index) (void)call.add({index, 3});
    EXPECT_EQ(call.now().missing(1, 3), -1) << "all are there, no other member exists";
}

TEST(PackingTeam, KnowsWhatIsInFlight) {
    packing_team team(0);

    EXPECT_FALSE(team.in_flight(0));
    team.note_started(1);
    EXPECT_TRUE(team.in_flight(0));
    EXPECT_FALSE(team.in_flight(1));
}

} // namespace
