// SPDX-License-Identifier: Apache-2.0
// A job under an MPI launcher: set-up and sums, over MPI and over shared memory. Run under each MPI's mpirun.
#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/clock.hpp>
#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/messenger.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace halocline::comm {
namespace {

class MpiJob : public testing::TestWithParam<std::string> {
  protected:
    static job_options options() {
        return {.transports = {GetParam()}, .deadline = std::chrono::seconds(30), .bootstrap = "mpi"};
    }
    job job_ = job::from_environment(options());
    int me_ = job_.rank(), ranks_ = job_.ranks();
    int next_ = (me_ + 1) % ranks_, previous_ = (me_ + ranks_ - 1) % ranks_;

    ~MpiJob() override { job_.barrier(); } // nobody leaves while others still look at this rank
};

TEST_P(MpiJob, IsStartedByMpi) {
    EXPECT_GT(ranks_, 1);
    EXPECT_TRUE(job_.launcher().rfind("Open MPI ", 0) == 0 || job_.launcher().rfind("MPICH ", 0) == 0)
        << job_.launcher();
    EXPECT_EQ(job_.transport(), GetParam());
}

TEST_P(MpiJob, SetupCollectivesDeliver) {
    const auto all = job_.gather("from " + std::to_string(me_));
    for (int r = 0; r < ranks_; ++r) EXPECT_EQ(all[r], "from " + std::to_string(r));

    const std::vector<int> peers{next_, previous_, me_};
    const std::vector<std::string> out{"up", "down", "own"};
    const auto in = job_.exchange(peers, out);
    EXPECT_EQ(in[2], "own");
    EXPECT_EQ(in[0], next_ == previous_ ? "up" : "down");
    EXPECT_EQ(in[1], next_ == previous_ ? "down" : "up");

    EXPECT_EQ(job_.broadcast(me_ == 1 ? "one" : "", 1), "one");
    EXPECT_THROW(job_.agree("the rank", std::to_string(me_)), input_error);
}

TEST(MpiSum, SameBitsOverBothTransports) {
    std::vector<std::uint64_t> bits[2];
    for (const int t : {0, 1}) {
        const job j =
            job::from_environment({.transports = {t == 0 ? "mpi" : "shm"}, .deadline = std::chrono::seconds(30)});
        global_sum sum(j, 8);
        for (int n = 0; n < 100; ++n) {
            double values[3];
            for (int i = 0; i < 3; ++i) values[i] = 1.0 / (3 + j.rank() + 7 * i + n);
            ASSERT_EQ(sum(values), status::ok);
            for (const double v : values) {
                std::uint64_t b;
                std::memcpy(&b, &v, sizeof b);
                bits[t].push_back(b);
            }
        }
        const auto of_zero =
            j.broadcast(std::string(reinterpret_cast<const char*>(bits[t].data()), bits[t].size() * 8));
        EXPECT_EQ(std::memcmp(of_zero.data(), bits[t].data(), of_zero.size()), 0) << "the same on every rank";
        j.barrier();
    }
    EXPECT_EQ(bits[0], bits[1]);
}

/// Round the ring; so large that MPI moves them straight into the receiver's memory.
void expect_large_messages_arrive(const job& j) {
    constexpr std::size_t n = 4 << 20;
    messenger m(j);
    const int next = (j.rank() + 1) % j.ranks(), previous = (j.rank() + j.ranks() - 1) % j.ranks();
    const std::vector<std::byte> out(n, static_cast<std::byte>(j.rank() + 1));
    std::vector<std::byte> in(n);
    for (int round = 0; round < 3; ++round) {
        std::ranges::fill(in, std::byte{0});
        std::array<message_request, 2> both;
        m.irecv(both[0], in, previous, 1);
        m.isend(both[1], out, next, 1);
        ASSERT_EQ(m.wait_all(both), status::ok) << m.pending();
        ASSERT_EQ(std::ranges::count(in, static_cast<std::byte>(previous + 1)), std::ptrdiff_t(n));
    }
}

/// Under both MPIs the exit code is 0 only if every rank gets through MPI_Finalize.
TEST(MpiJobGoesOn, AfterFailuresThatOneRankCatches) {
    const job j = job::from_environment({.transports = {"mpi"}, .deadline = std::chrono::seconds(20)});
    {
        messenger m(j);
        if (j.rank() == 0) {
            std::array<std::byte, 8> in{};
            const status s = m.recv(in, 1, 1);
            EXPECT_EQ(s, status::aborted) << "rank 1 closes its messenger";
            EXPECT_THROW(j.fail(s, m.pending()), rank_failure);
        }
    }
    j.barrier();
    expect_large_messages_arrive(j);
    if (j.rank() == 1) {
        EXPECT_THROW(j.fail(status::misused, "no such rank"), rank_failure);
        EXPECT_THROW(j.fail(status::wrong_data, "a receive"), rank_failure);
    }
    expect_large_messages_arrive(j);
    j.barrier();
}

/// No message was under way over MPI, which only started the failed job.
TEST(MpiJobGoesOn, WithAnotherJobAfterOneOverSharedMemoryHasFailed) {
    const auto fail = [] {
        const job j =
            job::from_environment({.transports = {"shm"}, .deadline = std::chrono::seconds(20), .bootstrap = "mpi"});
        if (j.rank() == 1) j.abort("enough");
        while (true) j.barrier();
    };
    EXPECT_THROW(fail(), rank_failure);

    const job j = job::from_environment({.transports = {"mpi"}, .deadline = std::chrono::seconds(20)});
    expect_large_messages_arrive(j);
    j.barrier();
}

/// Rank 1 is busy with something else while rank 0 waits for its farewell and then leaves: MPI may hold a half-filled
/// receive.
TEST(MpiJobEnds, AlthoughALargeMessageIsUnderWay) {
    constexpr std::size_t n = 16 << 20;
    const job j = job::from_environment({.transports = {"mpi"}, .deadline = std::chrono::seconds(30)});
    std::vector<channel_request> requests;
    if (j.rank() < 2) requests.push_back({1 - j.rank(), 0, 0, n, n, "other"});
    channel_set set(j, requests, {"pair", ""});
    set.for_each([](auto& c) { c.send(1, ticks()); });
    ASSERT_EQ(set.wait(1), status::ok);
    if (j.rank() != 1) return;
    set.for_each([](auto& c) { c.send(2, ticks()); });
    std::this_thread::sleep_for(std::chrono::seconds(4)); // farewells are awaited for 2
}

// A run of its own: rank 1 gives up, and its process ends although rank 0 continues with something else.
TEST(MpiJobGivenUp, ProcessEnds) {
    const auto run = [] {
        const job j = job::from_environment({.transports = {"mpi"}});
        j.barrier();
        if (j.rank() == 1) j.fail(status::misused, "no such rank");
        std::this_thread::sleep_for(std::chrono::seconds(200)); // longer than this run's time limit
    };
    EXPECT_THROW(run(), rank_failure);
}

INSTANTIATE_TEST_SUITE_P(Over, MpiJob, testing::Values("mpi", "shm"), [](const auto& which) { return which.param; });

} // namespace
} // namespace halocline::comm
