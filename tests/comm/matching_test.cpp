// SPDX-License-Identifier: Apache-2.0
// Which message meets which receive, without links: MPI's rule, and what is counted and kept.
#include "messages/matching.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace halocline::comm {
namespace {

constexpr int ranks = 3;
constexpr std::size_t room = 4, largest_payload = 40;

message_operation receive(int from, int tag, std::uint32_t context = 0) {
    message_operation r;
    r.peer = from;
    r.tag = tag;
    r.context = context;
    return r;
}

void begin(matching& all, message_operation& receive) {
    all.number(receive);
    all.post(receive);
}

struct Matching : testing::Test {
    message_counts counts;
    matching all{counts};
    Matching() { all.reserve(ranks, room, largest_payload); }
};

TEST_F(Matching, MessageMeetsTheOldestReceiveThatMatches) {
    message_operation any_tag_of_1 = receive(1, any_tag), tag_5_of_any = receive(any_source, 5),
                      tag_5_of_1 = receive(1, 5);
    for (message_operation* r : {&tag_5_of_any, &any_tag_of_1, &tag_5_of_1}) begin(all, *r);

    EXPECT_EQ(all.match({2, 4}), nullptr);
    EXPECT_EQ(all.match({1, 5, 9}), nullptr) << "another context";
    EXPECT_EQ(all.match({1, 5}), &tag_5_of_any);
    EXPECT_EQ(all.match({1, 5}), &any_tag_of_1);
    EXPECT_EQ(all.match({1, 6}), nullptr);
    EXPECT_EQ(all.match({1, 5}), &tag_5_of_1);
    EXPECT_EQ(all.match({1, 5}), nullptr);
    EXPECT_EQ(counts.arrived, 3u) << "a message that met no receive has to be kept before it has arrived";
}

TEST_F(Matching, ReceiveFromAnyRankGetsTheMessageThatCameFirst) {
    unexpected_message* const first = all.keep({2, 7, 0, 10});
    unexpected_message* const second = all.keep({0, 7, 0, 20});
    unexpected_message* const third = all.keep({2, 7, 0, 30});

    EXPECT_EQ(all.find(any_source, any_tag, 0), first);
    EXPECT_EQ(all.find(0, 7, 0), second);
    EXPECT_EQ(all.find(1, any_tag, 0), nullptr);
    EXPECT_EQ(all.find(any_source, 7, 1), nullptr) << "another context";
    all.remove(*first);
    EXPECT_EQ(all.find(any_source, 7, 0), second);
    EXPECT_EQ(all.find(2, 7, 0), third);
    EXPECT_EQ(third->what().bytes, 30u);
    EXPECT_EQ(counts.unexpected, 3u);
}

TEST_F(Matching, EachPeerHasItsOwnRoomForUnexpectedMessages) {
    std::vector<unexpected_message*> kept;
    for (std::size_t i = 0; i < room; ++i) kept.push_back(all.keep({1, static_cast<int>(i)}));

    EXPECT_EQ(all.keep({1, 9}), nullptr);
    EXPECT_NE(all.keep({2, 9}), nullptr);
    EXPECT_EQ(all.kept(1), room);
    EXPECT_EQ(counts.arrived, room + 1) << "one without room has not arrived: its link asks again";
    all.remove(*kept[1]);
    EXPECT_NE(all.keep({1, 9}), nullptr);
    EXPECT_EQ(all.first_kept(1), kept[0]);
}

TEST_F(Matching, NothingWaitsOnlyWithoutReceivesAndMessagesOfThatPeer) {
    message_operation of_2 = receive(2, 1), of_any = receive(any_source, 1);
    begin(all, of_2);

    EXPECT_TRUE(all.nothing_waits(1));
    EXPECT_FALSE(all.nothing_waits(2));
    all.withdraw(of_2);
    EXPECT_TRUE(all.nothing_waits(2));
    begin(all, of_any);
    EXPECT_FALSE(all.nothing_waits(1)) << "its message may be for the receive from any rank";
    all.withdraw(of_any);
    unexpected_message* const m = all.keep({1, 1});
    EXPECT_FALSE(all.nothing_waits(1));
    all.remove(*m);
    EXPECT_TRUE(all.nothing_waits(1));
}

TEST_F(Matching, ReceivePostedAgainHasItsOldPlace) {
    message_operation first = receive(1, 5), second = receive(any_source, 5), third = receive(1, 5);
    for (message_operation* r : {&first, &second, &third}) begin(all, *r);
    ASSERT_EQ(all.match({1, 5}), &first);
    ASSERT_EQ(all.match({1, 5}), &second);

    all.post_again(second);
    all.post_again(first);

    EXPECT_EQ(all.match({1, 5}), &first);
    EXPECT_EQ(all.match({1, 5}), &second);
    EXPECT_EQ(all.match({1, 5}), &third);
}

TEST_F(Matching, AbandonedReceivesAreDone) {
    message_operation one = receive(1, 1), any = receive(any_source, 1);
    begin(all, one);
    begin(all, any);

    all.abandon();

    EXPECT_TRUE(one.done());
    EXPECT_TRUE(any.done());
    EXPECT_EQ(all.match({1, 1}), nullptr);
}

/// The rule, implemented by one list in order of posting and one in order of arrival.
struct plain_matching {
    std::map<int, message_operation*> posted; ///< by step
    std::deque<unexpected_message*> kept;

    static bool meet(const message_operation& r, const envelope& m) {
        return (r.peer == any_source || r.peer == m.source) && matches(r.tag, r.context, m.tag, m.context);
    }
    /// The step in which the receive was posted, and the receive.
    std::pair<int, message_operation*> match(const envelope& m) {
        const auto r = std::ranges::find_if(posted, [&](const auto& p) { return meet(*p.second, m); });
        if (r == posted.end()) return {0, nullptr};
        const auto found = *r;
        posted.erase(r);
        return found;
    }
    unexpected_message* find(const message_operation& r) {
        for (unexpected_message* m : kept)
            if (meet(r, m->what())) return m;
        return nullptr;
    }
};

TEST(RandomMatching, EqualsOneListOfAllReceivesAndOneOfAllMessages) {
    message_counts counts;
    matching all(counts);
    all.reserve(ranks, 1000, largest_payload);
    plain_matching plain;
    std::deque<message_operation> receives;
    std::mt19937 random(4);
    int again = 0;
    const auto one_of = [&](int from, int to) { return std::uniform_int_distribution(from, to)(random); };

    for (int i = 0; i < 1000; ++i) {
        const auto context = static_cast<std::uint32_t>(one_of(0, 1));
        if (one_of(0, 1) == 0) {
            const envelope m{one_of(0, ranks - 1), one_of(0, 2), context, 0};
            message_operation* const met = all.match(m);
            const auto [step, plain_met] = plain.match(m);
            ASSERT_EQ(met, plain_met) << "step " << i;
            if (met == nullptr) {
                plain.kept.push_back(all.keep(m));
            } else if (one_of(0, 3) == 0 && plain.find(*met) == nullptr) { // the message is withdrawn
                all.post_again(*met);
                plain.posted.emplace(step, met);
                ++again;
            }
        } else {
            message_operation& r =
                receives.emplace_back(receive(one_of(any_source, ranks - 1), one_of(any_tag, 2), context));
            all.number(r);
            unexpected_message* const met = all.find(r.peer, r.tag, r.context);
            ASSERT_EQ(met, plain.find(r)) << "step " << i;
            if (met == nullptr) {
                all.post(r);
                plain.posted.emplace(i, &r);
            } else {
                all.remove(*met);
                std::erase(plain.kept, met);
            }
        }
    }
    EXPECT_GT(again, 20);
}

} // namespace
} // namespace halocline::comm
