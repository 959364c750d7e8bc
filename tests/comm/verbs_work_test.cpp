// SPDX-License-Identifier: Apache-2.0
// What transport `verbs` asks of a device, counted where ibv_post_send and its companions are. Needs no device.
#include "network/bulk_link.hpp"
#include "verbs_loop_device.hpp"

#include <halocline/comm/slab.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

namespace {

using namespace halocline::comm;
using namespace halocline_test;

/// Both ends send and take epochs 1 to `count`; the payload is compared.
void exchange(loop_pair& pair, std::size_t bytes, std::uint64_t count) {
    for (std::uint64_t k = 1; k <= count; ++k) {
        for (verbs_channel* c : {&pair.to, &pair.from}) {
            ASSERT_TRUE(k == 1 || c->sent(k - 1));
            std::memset(c->target(k), static_cast<int>(k + (c == &pair.to)), bytes);
            c->send(k, 0);
        }
        for (verbs_channel* c : {&pair.to, &pair.from}) {
            ASSERT_TRUE(c->arrived(k));
            ASSERT_TRUE(c->sent(k));
            ASSERT_EQ(c->check(k), status::ok) << c->trouble();
            const auto value = static_cast<std::byte>(k + (c == &pair.from));
            ASSERT_EQ(std::count(c->received(k), c->received(k) + bytes, value), static_cast<std::ptrdiff_t>(bytes));
        }
    }
}

TEST(VerbsWork, ASmallMessageIsOneInlineWriteAndEvery16thIsSignalled) {
    loop_pair pair(64, {});
    exchange(pair, 64, 160);
    EXPECT_EQ(posted.send_calls, 2 * 160u);
    EXPECT_EQ(posted.writes, 2 * 160u);
    EXPECT_EQ(posted.with_immediate, 2 * 160u);
    EXPECT_EQ(posted.inlined, 2 * 160u);
    EXPECT_EQ(posted.signalled, 2 * 160u / 16);
    EXPECT_EQ(posted.bytes, 2 * 160u * (32 + 64)); // label and payload, once
}

TEST(VerbsWork, AMessageThatIsNotInlineIsOneSignalledWrite) {
    loop_pair pair(4096, {});
    exchange(pair, 4096, 32);
    EXPECT_EQ(posted.send_calls, 2 * 32u);
    EXPECT_EQ(posted.writes, 2 * 32u);
    EXPECT_EQ(posted.inlined, 0u);
    EXPECT_EQ(posted.signalled, 2 * 32u);
}

TEST(VerbsWork, AMessageInPiecesIsOneCallAndConsumesOneReceive) {
    verbs_options options;
    options.largest_write = 4096;
    loop_pair pair(10'000, options);
    exchange(pair, 10'000, 8);
    EXPECT_EQ(posted.send_calls, 2 * 8u); // the pieces are chained
    EXPECT_EQ(posted.writes, 2 * 8u * 3);
    EXPECT_EQ(posted.with_immediate, 2 * 8u);
    EXPECT_EQ(posted.signalled, 2 * 8u);
}

TEST(VerbsWork, ReceivesArePostedInBatchesOf16) {
    loop_pair pair(64, {});
    exchange(pair, 64, 160);
    EXPECT_EQ(posted.receive_calls, 2 * 160u / 16);
    EXPECT_EQ(posted.receives, 2 * 160u);
}

TEST(VerbsWork, WhatHasArrivedIsSeenWithoutAPollOfTheQueue) {
    loop_pair pair(64, {});
    exchange(pair, 64, 1);
    const std::uint64_t polls = posted.polls;
    EXPECT_TRUE(pair.to.arrived(1));
    EXPECT_TRUE(pair.to.sent(1));
    EXPECT_EQ(posted.polls, polls);
}

/// Both ends of a link of large messages.
struct loop_bulk {
    job j = job::from_environment();
    verbs_library library = loop_library();
    verbs_world here, there;
    std::unique_ptr<bulk_link> to, from;

    explicit loop_bulk(const verbs_options& options) : here(options, &library), there(options, &library) {
        const std::string addresses[] = {here.address(), there.address()};
        here.connect(addresses, 0);
        there.connect(addresses, 1);
        to = here.open_bulk(j.memory(), 1, bulk_link::records);
        from = there.open_bulk(j.memory(), 0, bulk_link::records);
        to->connect(from->card());
        from->connect(to->card());
        posted = {};
    }
    void pass(std::uint32_t record, std::span<const std::byte> out, std::span<std::byte> in) {
        bulk_ticket ticket;
        ASSERT_EQ(from->receive(record, in, ticket), bulk_link::opening::open);
        ASSERT_FALSE(from->received(record));
        ASSERT_EQ(to->send(record, out, ticket), bulk_link::opening::open);
        bool sent = false;
        for (int look = 0; look < 10 && !sent; ++look) { // two pieces are under way at a time
            to->poll();
            sent = to->sent(record);
        }
        ASSERT_TRUE(sent);
        from->poll();
        ASSERT_TRUE(from->received(record));
        ASSERT_TRUE(std::ranges::equal(out, in));
    }
};

TEST(VerbsWork, ALargeMessageIsOneWriteAPieceAndNoCopy) {
    verbs_options options;
    options.largest_write = 1 << 16;
    loop_bulk bulk(options);
    const std::vector<std::byte> out(200'001, std::byte{7});
    std::vector<std::byte> in(out.size());

    bulk.pass(63, out, in);

    EXPECT_EQ(posted.writes, 4u);
    EXPECT_EQ(posted.bytes, out.size());
    EXPECT_EQ(bulk.to->writes(), 4u);
    EXPECT_EQ(posted.receives, 4u); // in place of those used up
    EXPECT_EQ(posted.registered, 2u);
    EXPECT_EQ(posted.deregistered, 2u); // no slab's memory: it may be other memory the next time
}

TEST(VerbsWork, RegistrationsOfTheSlabAreKept) {
    loop_bulk bulk({});
    const std::pmr::vector<std::byte> out(1 << 20, std::byte{1}, &bulk.j.memory());
    std::pmr::vector<std::byte> in(1 << 20, &bulk.j.memory());

    for (std::uint32_t i = 0; i < 100; ++i) bulk.pass(i % bulk_link::records, out, in);

    EXPECT_EQ(posted.writes, 100u);
    EXPECT_EQ(posted.registered, 2u);
    EXPECT_EQ(posted.deregistered, 0u);
}

TEST(VerbsWork, WhatCannotBeRegisteredIsRefusedAndTheLinkGoesOn) {
    loop_bulk bulk({});
    const std::vector<std::byte> out(100'000, std::byte{3});
    std::vector<std::byte> in(out.size());
    bulk_ticket ticket;

    loop_registers = false;
    EXPECT_EQ(bulk.from->receive(0, in, ticket), bulk_link::opening::refused);
    EXPECT_EQ(bulk.to->send(0, out, ticket), bulk_link::opening::refused);
    loop_registers = true;

    EXPECT_EQ(posted.writes, 0u);
    EXPECT_FALSE(bulk.to->failed() || bulk.from->failed());
    bulk.pass(0, out, in);
}

TEST(VerbsWork, AfterACutNothingIsWritten) {
    loop_bulk bulk({});
    const std::vector<std::byte> out(100'000, std::byte{3});
    std::vector<std::byte> in(out.size());
    bulk_ticket ticket;
    ASSERT_EQ(bulk.from->receive(0, in, ticket), bulk_link::opening::open);

    bulk.to->cut();
    static_cast<void>(bulk.to->send(0, out, ticket));

    EXPECT_EQ(posted.writes, 0u);
    EXPECT_TRUE(bulk.to->failed());
    EXPECT_FALSE(bulk.to->sent(0));
    bulk.from->give_up(0);
}

} // namespace
