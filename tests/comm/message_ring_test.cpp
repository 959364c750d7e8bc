// SPDX-License-Identifier: Apache-2.0
// Both ends of a stream of messages in one thread: what travels, and what credit allows the writer to do.
#include "messages/message_ring.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace halocline::comm {
namespace {

using bytes = std::vector<std::byte>;

bytes letters(std::size_t n, unsigned seed) {
    bytes b(n);
    for (std::size_t i = 0; i < n; ++i) b[i] = static_cast<std::byte>(seed + 7 * i + i / 64);
    return b;
}

/// A writer and its reader; unless credit_is_seen, the reader's credit in memory goes where the writer doesn't look.
struct stream {
    explicit stream(bool credit_is_seen, bool moves = false)
        : in(*there, credit_is_seen ? *here : *elsewhere, moves), out(*there, *here, moves) {}
    std::unique_ptr<link_layout> there = std::make_unique<link_layout>(), here = std::make_unique<link_layout>(),
                                 elsewhere = std::make_unique<link_layout>();
    ring_reader in;
    ring_writer out;

    bool send(std::size_t n, unsigned seed = 0) { return out.send(letters(n, seed), {1, 2, 0}); }
    /// Where the next message has arrived; no cell: nowhere.
    ring_reader::place next() const {
        const ring_reader::awaited message = in.await();
        const ring_reader::arrival how = message.look();
        if (how == ring_reader::arrival::none) return {};
        return how == ring_reader::arrival::in_slot ? message.slot() : message.cell();
    }
    /// Takes the next message, after which its place is the writer's.
    bytes take() {
        const ring_reader::place p = next();
        if (p.cell == nullptr) return {};
        bytes b(p.cell->message_bytes());
        in.copy(b.data(), p, b.size());
        in.take(p);
        return b;
    }
};

TEST(MessageRing, EverySizeArrivesWhole) {
    for (const bool moves : {false, true}) {
        stream s(true, moves);
        for (std::size_t n = 1; n <= messenger_options::largest_immediate; ++n) {
            ASSERT_TRUE(s.send(n, static_cast<unsigned>(n)));
            s.in.look_ahead(s.next(), true);
            ASSERT_EQ(s.take(), letters(n, static_cast<unsigned>(n)));
            ASSERT_EQ(s.next().cell, nullptr);
        }
    }
}

TEST(MessageRing, SlotsAreFreeAgainWhenTheCreditInMemorySaysSo) {
    stream s(true);
    for (std::size_t i = 0; i < link_layout::slots; ++i) ASSERT_TRUE(s.send(100));
    EXPECT_FALSE(s.send(100));

    s.take();

    EXPECT_TRUE(s.send(100));
    EXPECT_FALSE(s.send(100));
}

TEST(MessageRing, AnAnswerBringsCreditAlone) {
    stream s(false);
    for (std::size_t i = 0; i < link_layout::slots; ++i) ASSERT_TRUE(s.send(100));
    s.take(), s.take();
    EXPECT_FALSE(s.send(100));

    stream answers(true);
    ASSERT_TRUE(answers.out.send({}, {1, 2, s.in.slots_taken()}));
    s.out.credit(answers.next().cell->slots_taken);

    EXPECT_TRUE(s.send(100));
    EXPECT_TRUE(s.send(100));
    EXPECT_FALSE(s.send(100));
}

TEST(MessageRing, OldCreditTakesNothingAway) {
    stream s(true);
    for (std::size_t i = 0; i < link_layout::slots; ++i) ASSERT_TRUE(s.send(100));
    s.take(), s.take(), s.take();
    ASSERT_TRUE(s.send(100)); // the writer sees all three

    s.out.credit(1);

    EXPECT_TRUE(s.send(100));
    EXPECT_TRUE(s.send(100));
    EXPECT_FALSE(s.send(100));
}

TEST(MessageRing, LargeMessagesSayTheirBytesInTheAnnouncement) {
    stream s(true);
    constexpr std::uint64_t large = (std::uint64_t{1} << 40) + 3;

    s.out.announce([&] { return announcement{.bytes = large, .place = {}}; }, {1, 2, 0});

    ASSERT_NE(s.next().cell, nullptr);
    EXPECT_EQ(s.next().cell->message_bytes(), large);
}

} // namespace
} // namespace halocline::comm
