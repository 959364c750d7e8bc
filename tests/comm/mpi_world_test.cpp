// SPDX-License-Identifier: Apache-2.0
// MPI's world through its module, and channels over it, below any job. Run under each MPI's mpirun, the same binary.
#include "mpi/bulk.hpp"
#include "mpi/world.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/detail/mpi_channel.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory_resource>
#include <optional>
#include <ranges>
#include <string>
#include <thread>
#include <vector>

#include <sched.h>

namespace halocline::comm {
namespace {

using clock = std::chrono::steady_clock;

/// Fails instead of hanging.
mpi_world::progress at_most(std::chrono::seconds limit = std::chrono::seconds(30)) {
    return [end = clock::now() + limit] {
        if (clock::now() > end) throw job_error("the test waited too long");
    };
}

/// One world for all tests: MPI starts once per process.
mpi_world& world() {
    static mpi_world w(mpi_launch_from_environment().value(), at_most());
    return w;
}

void wait(const std::function<bool()>& done) {
    const auto check = at_most();
    while (!done()) {
        check();
        sched_yield();
    }
}

/// Both directions between this rank and `peer`, connected.
mpi_channel connected(int peer, std::uint32_t plan_id, std::size_t send_bytes, std::size_t receive_bytes) {
    mpi_channel c(world(), *std::pmr::new_delete_resource(), 0, peer, plan_id, send_bytes, receive_bytes);
    const std::string card = c.card();
    c.connect(world().allgather(card, at_most())[peer]);
    return c;
}

int partner() { return world().rank() ^ 1; }

std::byte pattern(int rank, std::uint64_t epoch, std::size_t place) {
    return static_cast<std::byte>((static_cast<std::size_t>(rank) * 31 + epoch * 7 + place * 13) % 251);
}

TEST(MpiWorld, IsWhatTheLauncherStarted) {
    const auto launch = mpi_launch_from_environment().value();

    EXPECT_EQ(world().ranks(), launch.ranks);
    EXPECT_EQ(world().version().rfind(launch.title + " ", 0), 0u) << world().version();
}

TEST(MpiWorld, GatherKeepsRanksAndSizes) {
    const std::string mine(static_cast<std::size_t>(world().rank()), static_cast<char>('a' + world().rank()));

    const auto all = world().allgather(mine, at_most());

    ASSERT_EQ(all.size(), static_cast<std::size_t>(world().ranks()));
    for (int r = 0; r < world().ranks(); ++r) {
        EXPECT_EQ(all[r], std::string(static_cast<std::size_t>(r), static_cast<char>('a' + r)));
    }
}

TEST(MpiChannel, AnotherPlanOrSizeIsWrongData) {
    const int peer = partner();
    const bool odd = world().rank() % 2 == 1;
    mpi_channel other_plan = connected(peer, odd ? 9 : 10, 64, 64);
    mpi_channel other_size = connected(peer, 11, odd ? 64 : 32, 64); // the even end sends too little
    mpi_channel too_long = connected(peer, 12, 1000, odd ? 64 : 1000);

    for (mpi_channel* c : {&other_plan, &other_size, &too_long}) {
        c->send(1, 0);
        wait([&] { return c->arrived(1); });
    }

    EXPECT_EQ(other_plan.check(1), status::wrong_data);
    EXPECT_EQ(other_size.check(1), odd ? status::wrong_data : status::ok);
    EXPECT_EQ(too_long.check(1), odd ? status::wrong_data : status::ok);
    EXPECT_EQ(too_long.trouble().empty(), !odd);
    (void)world().allgather("", at_most());
}

TEST(MpiChannel, TagsComeBackAndNoMessageIsMixedUp) {
    int highest = 0;
    for (std::uint32_t round = 0; round < 100; ++round) {
        mpi_channel a = connected(partner(), 100 + round, 64, 64);
        mpi_channel b = connected(partner(), 300 + round, 64, 64);
        highest = std::max({highest, a.tag(), b.tag()});
        for (mpi_channel* c : {&a, &b}) {
            *c->target(1) = pattern(world().rank(), round, c == &a ? 0 : 1);
            c->send(1, 0);
        }
        for (mpi_channel* c : {&a, &b}) {
            wait([&] { return c->arrived(1) && c->sent(1); });
            ASSERT_EQ(c->check(1), status::ok) << round;
            ASSERT_EQ(*c->received(1), pattern(partner(), round, c == &a ? 0 : 1)) << round;
        }
    }
    EXPECT_LT(highest, 100) << "of 200 channels, few are open at a time";
}

// A separate run: the launcher ends the odd ranks, which do not answer, as soon as the even ones are gone.
TEST(MpiWorldGivenUp, WaitEndsAndSoDoesTheProcess) {
    const std::string out = "to a rank that does not answer";
    int asked = 0;
    const auto soon = [&] {
        if (++asked == 100) throw job_error("given up");
    };

    if (world().rank() % 2 == 0) {
        EXPECT_THROW((void)world().allgather(out, soon), job_error);
        EXPECT_EQ(asked, 100);
    } else {
        std::this_thread::sleep_for(std::chrono::seconds(200)); // longer than this run's time limit
    }
}

// A separate run: after a failed job MPI is never called again.
TEST(MpiWorldLeft, NothingComesIntoMemoryThatWasGivenBackAndNoWorldFollows) {
    constexpr std::size_t n = 4 << 20;
    const auto launch = mpi_launch_from_environment().value();
    {
        mpi_world world(launch, at_most());
        const auto peer = static_cast<std::size_t>(world.rank() ^ 1);
        const auto of_peer = [&](const std::string& card) { return world.allgather(card, at_most())[peer]; };
        std::optional<mpi_channel> channel;
        channel.emplace(world, *std::pmr::new_delete_resource(), 0, static_cast<int>(peer), 1, 64, 64);
        channel->connect(of_peer(channel->card()));
        mpi_bulk_link large(world, static_cast<int>(peer), 1);
        large.connect(of_peer(large.card()));
        std::vector<std::byte> memory(n, std::byte{1});
        bulk_ticket ticket;
        const bool receives = world.rank() % 2 == 0;
        if (receives) {
            ASSERT_EQ(large.receive(0, memory, ticket), bulk_link::opening::open);
        }
        (void)of_peer("");

        if (receives) { // a third rank has died
            world.leave();
            large.cut();
            large.give_up(0);
            std::ranges::fill(memory, std::byte{2}); // now used for something else
        } else {
            std::this_thread::sleep_for(std::chrono::milliseconds(300)); // by then the peer has left
            ASSERT_EQ(large.send(0, memory, ticket), bulk_link::opening::open);
        }
        for (const auto end = clock::now() + std::chrono::seconds(1); clock::now() < end;) {
            if (receives)
                (void)channel->arrived(1);
            else
                (void)large.sent(0);
            world.poll();
        }
        if (receives) {
            channel.reset(); // before the world that it is of ends
            world.finish([] { return true; });
            EXPECT_EQ(std::ranges::count(memory, std::byte{2}), std::ptrdiff_t(n));
        }
        world.leave();
    }

    EXPECT_THROW(mpi_world(launch, at_most()), job_error);
}

} // namespace
} // namespace halocline::comm
