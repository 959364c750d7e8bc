// SPDX-License-Identifier: Apache-2.0
// What transport `verbs` asks of a device, counted in place of ibv_post_send and its companions. Needs no device.
#include "network/bulk_link.hpp"
#include "network/direct_memory.hpp"
#include "network/network_window_channel.hpp"
#include "node/node_slab.hpp"
#include "verbs/port.hpp"
#include "verbs/tags.hpp"
#include "verbs_loop_device.hpp"

#include <halocline/comm/slab.hpp>
#include <halocline_test/counted_memory.hpp>
#include <halocline_test/leaks_on_purpose.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
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
    EXPECT_EQ(posted.bytes, 2 * 160u * 64); // just the payload
}

/// Sends one message of `bytes` of epoch `k` from `to`, and lets `from` poll for it.
void pass(loop_pair& pair, std::uint64_t k, std::size_t bytes, std::uint64_t stamp = 0, std::uint32_t field = 0) {
    ASSERT_TRUE(k == 1 || pair.to.sent(k - 1));
    std::memset(pair.to.target(k), static_cast<int>(k), bytes);
    pair.to.send_part(k, stamp, bytes, field);
    static_cast<void>(pair.from.arrived(k));
}

TEST(VerbsWork, ALabelTravelsOnlyIfItSaysMoreThanEpochAndLength) {
    loop_pair pair(64, {});
    struct message {
        std::uint64_t stamp;
        std::uint32_t field;
        std::size_t on_the_wire;
    };
    std::uint64_t k = 0;
    for (const message m :
         {message{0, 0, 64}, {7, 0, 96}, {0, 0, 64}, {0, 3, 96}, {9, 2, 96}, {0, 0, 64}, {0, 0, 64}}) {
        posted = {};
        pass(pair, ++k, 64, m.stamp, m.field);
        EXPECT_EQ(posted.bytes, m.on_the_wire) << "epoch " << k;
        EXPECT_EQ(posted.writes, 1u);
        ASSERT_EQ(pair.from.check(k), status::ok) << "epoch " << k;
        const message_label& label = pair.from.label(k);
        EXPECT_EQ(label.epoch.load(), k);
        EXPECT_EQ(label.bytes, 64u);
        EXPECT_EQ(label.start_stamp, m.stamp);
        EXPECT_EQ(label.field_index, m.field);
        EXPECT_EQ(std::count(pair.from.received(k), pair.from.received(k) + 64, static_cast<std::byte>(k)), 64);
    }
}

TEST(VerbsWork, AShorterMessageSaysItsLength) {
    loop_pair pair(64, {});
    std::uint64_t k = 0;
    for (const std::size_t bytes : {64, 63, 8, 1, 0, 0, 64}) {
        posted = {};
        pass(pair, ++k, bytes);
        EXPECT_EQ(posted.bytes, bytes);
        EXPECT_EQ(pair.from.check_part(k), status::ok);
        EXPECT_EQ(pair.from.label(k).bytes, bytes);
        EXPECT_EQ(pair.from.check(k), bytes == 64 ? status::ok : status::wrong_data) << bytes;
    }
}

TEST(VerbsWork, AMessageOfAnotherEpochIsWrongData) {
    loop_pair pair(64, {});
    pass(pair, 1, 64);
    ASSERT_EQ(pair.from.check(1), status::ok);
    pair.to.send(3, 0); // replaces epoch 2
    ASSERT_TRUE(pair.from.arrived(2));
    EXPECT_EQ(pair.from.check(2), status::wrong_data);

    loop_pair again(64, {});
    pass(again, 1, 64);
    again.to.send(1, 0);
    ASSERT_TRUE(again.from.arrived(2));
    EXPECT_EQ(again.from.check(2), status::wrong_data);
}

TEST(VerbsWork, AMessageOfOneWriteNeedsNoLabelWhereWithItItWouldBeTwo) {
    verbs_options options;
    options.largest_write = 4096;
    loop_pair pair(4096, options);
    exchange(pair, 4096, 4);
    EXPECT_EQ(posted.writes, 2 * 4u);
    posted = {};
    pass(pair, 5, 4096, 1);
    EXPECT_EQ(posted.writes, 2u);
    ASSERT_EQ(pair.from.check(5), status::ok);
    EXPECT_EQ(pair.from.label(5).start_stamp, 1u);
}

TEST(VerbsWork, AGreetingOfAnotherPlanIsRefused) {
    loop_pair pair(64, {}, 2);
    EXPECT_TRUE(pair.to.connected());
    EXPECT_NE(pair.to.trouble().find("a greeting of another plan"), std::string::npos) << pair.to.trouble();
}

TEST(VerbsWork, TwentyNineBitsOfAnEpochFindItAgain) {
    constexpr std::uint64_t wrap = std::uint64_t{1} << 30;
    for (const std::uint64_t expected : {std::uint64_t{1}, wrap - 1, wrap, 5 * wrap, 5 * wrap + 77, wrap * wrap}) {
        for (const std::int64_t off : {0, 1, -1, 1000, -1000}) {
            const std::uint64_t sent = expected + static_cast<std::uint64_t>(off);
            const std::uint32_t immediate = verbs_tags::immediate(verbs_tags::labelled, sent);
            EXPECT_EQ(immediate & verbs_tags::mask, verbs_tags::labelled);
            EXPECT_EQ(verbs_tags::number_near(expected, immediate), sent) << expected << " and " << off;
        }
    }
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

/// As when a queue pair fails: then each of its requests completes, even those that were not to be signalled.
TEST(VerbsWork, AQueueHoldsTheCompletionsOfAllRequests) {
    verbs_options in_pieces;
    in_pieces.largest_write = 4096;
    for (const auto& [bytes, options] :
         {std::pair(64, verbs_options{}), {4096, verbs_options{}}, {10'000, in_pieces}}) {
        const loop_pair pair(static_cast<std::size_t>(bytes), options);
        const auto& queue = static_cast<const loop_device::queue&>(*loop_device::pairs.back().recv_cq);
        EXPECT_GE(queue.room, queue.requests) << bytes;
    }
}

TEST(VerbsWork, WhatHasArrivedIsSeenWithoutAPollOfTheQueue) {
    loop_pair pair(64, {});
    exchange(pair, 64, 1);
    const std::uint64_t polls = posted.polls;
    EXPECT_TRUE(pair.to.arrived(1));
    EXPECT_TRUE(pair.to.sent(1));
    EXPECT_EQ(posted.polls, polls);
}

TEST(VerbsWork, AQueueThatFailsEndsTheWaitAndIsTold) {
    loop_pair pair(64, {});
    loop_completes = false;
    const bool over = pair.from.arrived(1);
    loop_completes = true;

    EXPECT_TRUE(over);
    EXPECT_EQ(pair.from.check(1), status::peer_died);
    EXPECT_EQ(pair.from.trouble(), "verbs (loop0 port 1): ibv_poll_cq: Input/output error");
}

TEST(VerbsWork, AWriteIsTriedForMoreThanHalfOfTheLinkTimeoutAndNotLonger) {
    using namespace std::chrono_literals;
    using std::chrono::milliseconds;
    for (const milliseconds link_timeout : {2000ms, 5000ms, 60'000ms, 3'600'000ms}) {
        const verbs_retries r(link_timeout);
        EXPECT_LE(verbs_retries::tries * r.each(), link_timeout);
        EXPECT_GT(2 * verbs_retries::tries * r.each(), link_timeout);
    }
    EXPECT_GE(verbs_retries(5000ms).each() * verbs_retries::tries, 3500ms); // a link that is down for 2 s is survived

    const loop_pair pair(64, {});
    const ibv_qp_attr& sends = loop_device::pairs.back().sends;
    EXPECT_EQ(sends.timeout, verbs_retries(loop_link_timeout).exponent);
    EXPECT_EQ(sends.retry_cnt, 6); // to soft-RoCE 7 means no limit
    EXPECT_EQ(sends.rnr_retry, 7); // no limit
}

TEST(VerbsWork, WhatIsNotAcknowledgedIsReportedWithBothAddressesAndWhatItMeans) {
    for (const auto& [status, meaning] :
         {std::pair(IBV_WC_RETRY_EXC_ERR, "none of 7 tries of 536 ms was acknowledged (link_timeout_ms): the link is "
                                          "cut, or the process there is gone"),
          {IBV_WC_RNR_RETRY_EXC_ERR, "the link is well, but no receive is ready there"}}) {
        loop_pair pair(4096, {});
        loop_sends = status;
        pair.to.send(1, 0);
        loop_sends = IBV_WC_SUCCESS;

        EXPECT_TRUE(pair.to.arrived(1));
        EXPECT_EQ(pair.to.check(1), status::peer_died);
        EXPECT_NE(pair.to.trouble().find(meaning), std::string::npos) << pair.to.trouble();
        EXPECT_NE(pair.to.trouble().find("a status from LID 1 to LID 1"), std::string::npos) << pair.to.trouble();
    }
}

/// The text of the error that `make` throws.
template <class Make>
std::string error_of(Make make) {
    try {
        make();
    } catch (const halocline::error& e) {
        return e.what();
    }
    return "no error";
}

/// Expects `text` to name what could not be obtained, and the memlock limit.
void expect_memlock_advice(const std::string& text, std::string_view what) {
    EXPECT_NE(text.find(what), std::string::npos) << text;
    EXPECT_NE(text.find("(ulimit -l)"), std::string::npos) << text;
}

TEST(VerbsWork, AWorldTriesToLockMemoryAndGivesItBack) {
    const verbs_library library = loop_library();
    posted = {};
    const int queues_before = loop_device::open_queues;
    const verbs_world world({}, loop_link_timeout, &library);
    EXPECT_EQ(posted.registered, 1u);
    EXPECT_EQ(posted.deregistered, 1u);
    EXPECT_EQ(loop_device::open_queues, queues_before);
}

TEST(VerbsWork, AWorldIsRefusedWhereNoMemoryCanBeLocked) {
    const verbs_library library = loop_library();
    const auto open = [&] { const verbs_world world({}, loop_link_timeout, &library); };
    const int queues_before = loop_device::open_queues, domains_before = loop_device::open_domains;

    loop_registers = 0;
    expect_memlock_advice(error_of(open), "registering 524288 bytes on trial (ibv_reg_mr): Cannot allocate memory");
    loop_registers = any_amount;
    loop_queues = false;
    expect_memlock_advice(error_of(open), "a queue of 128 completions on trial (ibv_create_cq)");
    loop_queues = true;
    EXPECT_EQ(error_of(open), "no error");
    EXPECT_EQ(loop_device::open_queues, queues_before);
    EXPECT_EQ(loop_device::open_domains, domains_before);
}

/// EFA, iWARP, usNIC: their first plan would fail.
TEST(VerbsWork, ADeviceWithoutReliableConnectionsIsPassedOver) {
    const verbs_library library = loop_library();
    for (const ibv_transport_type other : {IBV_TRANSPORT_IWARP, IBV_TRANSPORT_UNSPECIFIED}) {
        loop_device::device.transport_type = other;
        const std::string text = error_of([&] { const verbs_world world({}, loop_link_timeout, &library); });
        loop_device::device.transport_type = IBV_TRANSPORT_IB;
        EXPECT_NE(text.find("no RDMA device with an active port 1"), std::string::npos) << text;
        EXPECT_NE(text.find("(neither InfiniBand nor RoCE: "), std::string::npos) << text;
    }
}

TEST(VerbsWork, AQueueThatCannotBeMadeIsReportedWithTheMemlockLimit) {
    const verbs_library library = loop_library();
    verbs_world world({}, loop_link_timeout, &library);
    const std::string addresses[] = {world.address(), world.address()};
    world.connect(addresses, 0);
    static_cast<void>(world.open(*std::pmr::new_delete_resource(), 1, 1, 64, 64));
    const auto slab = std::make_shared<node_slab>(std::size_t{8} << 20);

    loop_queues = false;
    const std::string of_a_plan = error_of([&] { world.complete(1); });
    const std::string of_large_messages =
        error_of([&] { static_cast<void>(world.open_bulk(*slab, 1, bulk_link::records)); });
    loop_queues = true;

    expect_memlock_advice(of_a_plan, "completions for a plan of 1 channels (ibv_create_cq)");
    expect_memlock_advice(of_large_messages, "completions for large messages to and from rank 1 (ibv_create_cq)");
}

TEST(VerbsWork, ChildrenKeepTheirPagesWhereTheKernelCopiesThem) {
    const verbs_library library = loop_library();
    for (const int status : {0, 2}) { // IBV_FORK_DISABLED, IBV_FORK_UNNEEDED
        loop_fork_status = status;
        posted = {};
        const verbs_world world({}, loop_link_timeout, &library);
        EXPECT_EQ(posted.fork_inits, status == 0 ? 1u : 0u);
    }
    loop_fork_status = 0;
}

TEST(VerbsWork, AWorldIsRefusedWhereAForkWouldTakeMemoryAway) {
    const verbs_library library = loop_library();
    loop_forks = EINVAL;
    const std::string text = error_of([&] { const verbs_world world({}, loop_link_timeout, &library); });
    loop_forks = 0;

    EXPECT_NE(text.find("would not outlive a fork() (ibv_fork_init): Invalid argument"), std::string::npos) << text;
    EXPECT_NE(text.find("IBV_FORK_SAFE=1"), std::string::npos) << text;
}

/// Both ends of a link of large messages.
struct loop_bulk {
    job j = job::from_environment();
    verbs_library library = loop_library();
    verbs_world here, there;
    std::unique_ptr<bulk_link> to, from;

    explicit loop_bulk(const verbs_options& options)
        : here(options, loop_link_timeout, &library), there(options, loop_link_timeout, &library) {
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
        for (int look = 0; look < 10 && !sent; ++look) { // at most two pieces are under way at a time
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
    EXPECT_EQ(posted.receives, 4u); // replacing those consumed
    EXPECT_EQ(posted.registered, 2u);
    EXPECT_EQ(posted.deregistered, 2u); // not in a slab: it may be other memory the next time
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

/// Memory of the slab is registered for 7 large messages, and nothing is left of the limit.
struct full_of_registrations : loop_bulk {
    full_of_registrations() : loop_bulk({}) {
        constexpr std::size_t bytes = 1 << 20;
        for (int i = 0; i < 7; ++i) {
            const std::pmr::vector<std::byte>& out = kept.emplace_back(bytes, std::byte{1}, &j.memory());
            pass(0, out, kept.emplace_back(bytes, std::byte{0}, &j.memory()));
        }
        loop_registers = loop_registered;
    }
    ~full_of_registrations() { loop_registers = any_amount; }
    full_of_registrations(const full_of_registrations&) = delete;
    full_of_registrations& operator=(const full_of_registrations&) = delete;

    std::deque<std::pmr::vector<std::byte>> kept;
};

TEST(VerbsWork, RegistrationsThatAreKeptMakeRoomForPlans) {
    full_of_registrations full;
    const std::size_t before = loop_registered;

    verbs_channel channel(full.here, *std::pmr::new_delete_resource(), 0, 1, 7, 200'000, 200'000);
    full.here.complete(7);

    EXPECT_LT(loop_registered, before);
}

TEST(VerbsWork, RegistrationsThatAreKeptMakeRoomForExposedMemory) {
    full_of_registrations full;
    std::vector<std::byte> field(1 << 20);
    EXPECT_NE(full.here.expose(field), nullptr);
}

TEST(VerbsWork, RegistrationsOfReceivesMakeRoomForASend) {
    full_of_registrations full;
    const std::vector<std::byte> out(1 << 10, std::byte{3});
    std::vector<std::byte> in(out.size());
    bulk_ticket ticket;
    ASSERT_EQ(full.to->receive(1, in, ticket), bulk_link::opening::open);
    loop_registers = loop_registered;
    EXPECT_EQ(full.from->send(1, out, ticket), bulk_link::opening::open);
    full.from->poll();
    full.to->poll();
    EXPECT_TRUE(full.from->sent(1) && full.to->received(1));
}

TEST(VerbsWork, WhatCannotBeRegisteredIsRefusedAndTheLinkGoesOn) {
    loop_bulk bulk({});
    const std::vector<std::byte> out(100'000, std::byte{3});
    std::vector<std::byte> in(out.size());
    bulk_ticket ticket;

    loop_registers = 0;
    EXPECT_EQ(bulk.from->receive(0, in, ticket), bulk_link::opening::refused);
    EXPECT_EQ(bulk.to->send(0, out, ticket), bulk_link::opening::refused);
    loop_registers = any_amount;

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

/// Connects both ends, and forgets what was posted for that.
template <class Channel>
void join(Channel& to, Channel& from) {
    to.connect(from.card());
    from.connect(to.card());
    for (int look = 0; look < 2; ++look) {
        static_cast<void>(to.connected());
        static_cast<void>(from.connected());
    }
    posted = {};
}

/// Two ranks in this process with a direct channel between their fields of 4 KiB, two each.
struct direct_pair {
    static constexpr std::size_t field_bytes = 4096;
    verbs_library library = loop_library();
    verbs_world here{{}, loop_link_timeout, &library}, there{{}, loop_link_timeout, &library};
    std::shared_ptr<node_slab> slab = std::make_shared<node_slab>(std::size_t{8} << 20);
    std::byte* const memory = static_cast<std::byte*>(slab->allocate(4 * field_bytes, 64));
    verbs_direct_channel to, from;

    explicit direct_pair(const std::vector<direct_write>& writes)
        : to(end(here, 0, writes)), from(end(there, 1, writes)) {
        join(to, from);
    }
    ~direct_pair() {
        to.close();
        from.close();
    }
    [[nodiscard]] std::byte* field(int rank, int n) const { return memory + (2 * rank + n) * field_bytes; }

  private:
    verbs_direct_channel end(verbs_world& world, int rank, const std::vector<direct_write>& writes) {
        const std::string addresses[] = {here.address(), there.address()};
        world.connect(addresses, rank);
        auto fields = std::make_shared<direct_memory>(slab);
        for (int n = 0; n < 2; ++n) fields->add(field(rank, n), world.expose({field(rank, n), field_bytes}));
        verbs_direct_channel channel(world, *std::pmr::new_delete_resource(), 0, 1 - rank, 1, writes, fields);
        world.complete(1);
        return channel;
    }
};

TEST(VerbsWork, ADirectMessageIsAFreeFlagAndAChainOfWrites) {
    direct_pair pair({{0, 0, 2048, 512}, {0, 1024, 3072, 1024}});
    std::memset(pair.memory, 0, 4 * direct_pair::field_bytes);
    constexpr std::uint64_t epochs = 40;
    for (std::uint64_t k = 1; k <= epochs; ++k) {
        const int own = static_cast<int>(k % 2), other = static_cast<int>(k / 2 % 2); // the bound fields
        std::memset(pair.field(0, own), static_cast<int>(k), 2048);
        std::memset(pair.field(1, other), static_cast<int>(k + 100), 2048);
        pair.to.free(k, 0, static_cast<std::uint32_t>(own));
        EXPECT_FALSE(pair.to.freed(k));
        EXPECT_FALSE(pair.to.sent(k));
        pair.from.free(k, 0, static_cast<std::uint32_t>(other));
        ASSERT_TRUE(pair.to.freed(k));
        ASSERT_TRUE(pair.from.freed(k));
        EXPECT_FALSE(pair.from.arrived(k));
        pair.to.send(k, static_cast<std::uint32_t>(own), pair.to.peer_field(k));
        pair.from.send(k, static_cast<std::uint32_t>(other), pair.from.peer_field(k));
        for (verbs_direct_channel* c : {&pair.to, &pair.from}) {
            ASSERT_TRUE(c->sent(k));
            ASSERT_TRUE(c->arrived(k));
            ASSERT_EQ(c->check(k), status::ok);
        }
        const auto filled = [&](const std::byte* ghosts, std::uint64_t value) {
            const auto b = static_cast<std::byte>(value);
            return std::count(ghosts, ghosts + 512, b) == 512 && std::count(ghosts + 1024, ghosts + 2048, b) == 1024 &&
                   std::count(ghosts + 512, ghosts + 1024, std::byte{}) == 512;
        };
        EXPECT_TRUE(filled(pair.field(0, own) + 2048, k + 100)) << k;
        EXPECT_TRUE(filled(pair.field(1, other) + 2048, k)) << k;
    }
    // Both directions in each epoch: the flag, and two writes, the last of which announces both.
    EXPECT_EQ(posted.send_calls, 2 * 2 * epochs);
    EXPECT_EQ(posted.writes, 2 * 3 * epochs);
    EXPECT_EQ(posted.with_immediate, 2 * 2 * epochs);
    EXPECT_EQ(posted.signalled, 2 * (epochs + epochs / 16));
    EXPECT_EQ(posted.registered, 0u);
}

/// Two ranks in this process with a window between them, which has one or two places at the receiver.
struct window_pair {
    static constexpr std::size_t most = 20'000;
    verbs_library library = loop_library();
    verbs_options options;
    verbs_world here, there;
    std::shared_ptr<node_slab> slab = std::make_shared<node_slab>(std::size_t{8} << 20);
    std::byte* const source = static_cast<std::byte*>(slab->allocate(most, 64));
    std::byte* const targets[2] = {static_cast<std::byte*>(slab->allocate(most, 64)),
                                   static_cast<std::byte*>(slab->allocate(most, 64))};
    std::size_t places;
    verbs_window_channel to, from;

    explicit window_pair(std::size_t places_there)
        : options(in_writes_of(4096)), here(options, loop_link_timeout, &library),
          there(options, loop_link_timeout, &library), places(places_there), to(end(here, true)),
          from(end(there, false)) {
        join(to, from);
    }
    ~window_pair() {
        to.close();
        from.close();
    }
    static verbs_options in_writes_of(std::size_t bytes) {
        verbs_options o;
        o.largest_write = bytes;
        return o;
    }
    [[nodiscard]] std::byte* target(std::uint64_t epoch) const { return targets[places == 1 ? 0 : epoch & 1]; }

  private:
    verbs_window_channel end(verbs_world& world, bool sends) {
        const std::string addresses[] = {here.address(), there.address()};
        world.connect(addresses, sends ? 0 : 1);
        auto memory = std::make_shared<direct_memory>(slab);
        for (std::size_t n = 0; n < (sends ? 1 : places); ++n) {
            std::byte* const place = sends ? source : targets[n];
            memory->add(place, world.expose({place, most}));
        }
        verbs_window_channel channel(world, *std::pmr::new_delete_resource(), sends ? 1 : 0, 1, sends, most, memory);
        world.complete(1);
        return channel;
    }
};

TEST(VerbsWork, AWindowsMessageIsWritesOfItsBytesAndOfAPartANote) {
    for (const std::size_t places : {1, 2}) {
        window_pair pair(places);
        std::uint64_t k = 0;
        for (const std::size_t bytes : {20'000, 1, 0, 4096, 4097, 0, 20'000, 8192, 19'999}) {
            ++k;
            std::memset(pair.source, static_cast<int>(k), window_pair::most);
            for (std::byte* t : pair.targets) std::memset(t, 0, window_pair::most);
            posted = {};
            pair.from.send(k, 0); // the token
            ASSERT_TRUE(pair.to.arrived(k));
            EXPECT_FALSE(pair.from.message_arrived(k));
            pair.to.send_part(k, 0, bytes);
            ASSERT_TRUE(pair.to.sent(k));
            ASSERT_TRUE(pair.from.message_arrived(k));
            ASSERT_EQ(pair.from.check_message(k), status::ok);
            EXPECT_EQ(pair.from.bytes(k), bytes);
            std::byte* const t = pair.target(k);
            EXPECT_EQ(std::count(t, t + bytes, static_cast<std::byte>(k)), static_cast<std::ptrdiff_t>(bytes));
            EXPECT_EQ(std::count(t + bytes, t + window_pair::most, std::byte{}),
                      static_cast<std::ptrdiff_t>(window_pair::most - bytes));
            const std::size_t writes = (bytes + 4095) / 4096;
            EXPECT_EQ(posted.writes, (bytes < window_pair::most ? 2 : 1) + writes)
                << "token, note, " << bytes << " bytes";
            EXPECT_EQ(posted.with_immediate, 1u + (bytes < window_pair::most) + (bytes > 0));
            EXPECT_EQ(posted.bytes, (bytes < window_pair::most ? 24 : 0) + bytes);
            EXPECT_EQ(posted.registered, 0u);
        }
    }
}

/// With two places the next message, and the sender's farewell, may come before the receiver looks.
TEST(VerbsWork, TwoMessagesOfAWindowAreTakenOneAfterTheOther) {
    window_pair pair(2);
    pair.from.send(1, 0);
    ASSERT_TRUE(pair.to.arrived(1));
    for (std::uint64_t k = 1; k <= 2; ++k) {
        std::memset(pair.source, static_cast<int>(k), window_pair::most);
        pair.to.send_part(k, 0, 5000 * k);
        ASSERT_TRUE(pair.to.sent(k));
    }
    pair.to.close();
    for (std::uint64_t k = 1; k <= 2; ++k) {
        ASSERT_TRUE(pair.from.message_arrived(k));
        ASSERT_EQ(pair.from.check_message(k), status::ok);
        EXPECT_EQ(pair.from.bytes(k), 5000 * k);
        EXPECT_EQ(pair.target(k)[5000 * k - 1], static_cast<std::byte>(k));
    }
    ASSERT_TRUE(pair.from.message_arrived(3));
    EXPECT_EQ(pair.from.check_message(3), status::aborted);
}

TEST(VerbsWork, ADirectMessageEndsWithThePeer) {
    direct_pair pair({{0, 0, 2048, 512}});
    pair.to.free(1, 0, 0);
    pair.from.close();
    ASSERT_TRUE(pair.to.arrived(1));
    ASSERT_TRUE(pair.to.sent(1));
    EXPECT_EQ(pair.to.check(1), status::aborted);
}

/// A plan of two channels between two ranks in this process.
struct plan_of_two {
    verbs_library library = loop_library();
    counted_memory memory;
    verbs_world here{{}, loop_link_timeout, &library}, there{{}, loop_link_timeout, &library};
    std::vector<verbs_channel> to, from;
    std::size_t first_pair = loop_device::pairs.size();

    plan_of_two() {
        for (const int rank : {0, 1}) {
            verbs_world& world = rank == 0 ? here : there;
            const std::string addresses[] = {here.address(), there.address()};
            world.connect(addresses, rank);
            for (std::size_t i = 0; i < 2; ++i)
                (rank == 0 ? to : from).emplace_back(world, memory, i, 1 - rank, 1, 64, 64);
            world.complete(1);
        }
        for (std::size_t i = 0; i < 2; ++i) {
            to[i].connect(from[i].card());
            from[i].connect(to[i].card());
        }
        for (int look = 0; look < 2; ++look)
            for (auto* ends : {&to, &from})
                for (verbs_channel& c : *ends) static_cast<void>(c.connected());
    }
    /// The device finds out that the first channel's peer can't be reached; then the channel goes.
    void lose_the_first() {
        loop_sends = IBV_WC_RETRY_EXC_ERR;
        to[0].send(1, 0);
        loop_sends = IBV_WC_SUCCESS;
        EXPECT_TRUE(to[0].arrived(1));
        EXPECT_NE(to[0].trouble(), "");
        to.erase(to.begin());
        here.sweep();
    }
};

TEST(VerbsWork, LateCompletionsOfALostChannelReachNobody) {
    plan_of_two plan;
    loop_device::pair& lost = loop_device::pairs[plan.first_pair];
    const std::size_t before = plan.memory.taken;

    plan.lose_the_first();
    EXPECT_LT(plan.memory.taken, before) << "its block";
    std::vector<std::vector<unsigned char>> reused; // what the allocator gives to others, if it has the end's memory
    for (std::size_t bytes = 256; bytes <= 4096; bytes += 16)
        for (int i = 0; i < 4; ++i) reused.emplace_back(bytes, 0xAA);
    for (const std::uint64_t id : lost.receives)
        loop_device::complete(lost.recv_cq, id, IBV_WC_RECV, 0, 0, IBV_WC_WR_FLUSH_ERR);
    plan.from[1].send(1, 0);

    EXPECT_TRUE(plan.to[0].arrived(1));
    EXPECT_EQ(plan.to[0].check(1), status::ok) << plan.to[0].trouble();
    for (const auto& block : reused)
        EXPECT_EQ(std::ranges::count(block, 0xAA), static_cast<std::ptrdiff_t>(block.size())) << block.size();
}

TEST(VerbsWork, ThePlansQueueGoesWithItsLastChannel) {
    const int before = loop_device::open_queues;
    plan_of_two plan;
    EXPECT_EQ(loop_device::open_queues, before + 2);
    plan.lose_the_first();
    EXPECT_EQ(loop_device::open_queues, before + 2);

    plan.to.clear();
    plan.from.clear();
    for (verbs_world* w : {&plan.here, &plan.there}) w->sweep();

    EXPECT_EQ(loop_device::open_queues, before + 1) << "the lost channel's peer still waits for its farewell";
}

TEST(VerbsWork, MemoryThatTheDeviceDoesNotLetGoOfStaysTaken) {
    for (const bool of_queue_pair : {true, false}) {
        const leaks_on_purpose of_the_device;
        plan_of_two plan;
        if (of_queue_pair)
            plan.library.destroy_qp = [](ibv_qp*) { return EBUSY; };
        else
            plan.library.dereg_mr = [](ibv_mr*) { return EBUSY; };
        const std::size_t before = plan.memory.taken;

        plan.lose_the_first();

        EXPECT_EQ(plan.memory.taken, before) << of_queue_pair;
        plan.library = loop_library();
    }
}

TEST(VerbsWork, ALinkEndsIfTheDeviceDoesNotLetGoOfAMessageThatWasGivenUp) {
    const leaks_on_purpose of_the_device;
    loop_bulk bulk({});
    std::vector<std::byte> in(100'000);
    bulk_ticket ticket;
    ASSERT_EQ(bulk.from->receive(0, in, ticket), bulk_link::opening::open);
    bulk.library.dereg_mr = [](ibv_mr*) { return EBUSY; };

    bulk.from->give_up(0);

    EXPECT_TRUE(bulk.from->failed());
    bulk.library = loop_library();
}

} // namespace
