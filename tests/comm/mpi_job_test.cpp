// SPDX-License-Identifier: Apache-2.0
// A job under an MPI launcher: set-up, channels and sums, over MPI and over shared memory. Run under each MPI's mpirun.
#include <halocline/comm/channel_set.hpp>
#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/slab.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace halocline::comm {
namespace {

class MpiJob : public testing::TestWithParam<std::string> {
  protected:
    static job_options options() { return {.transports = {GetParam()}, .deadline = std::chrono::seconds(30)}; }
    job job_ = job::from_environment(options());
    int me_ = job_.rank(), ranks_ = job_.ranks();
    int next_ = (me_ + 1) % ranks_, previous_ = (me_ + ranks_ - 1) % ranks_;

    ~MpiJob() override { job_.barrier(); } // nobody leaves while others still look at this rank

    /// A ring: one end up, one end down; with two ranks both are at the same peer.
    channel_set ring(std::size_t bytes) const {
        const std::vector<channel_request> requests{{next_, 0, 1, bytes, bytes, "up"}, {previous_, 1, 0, bytes, bytes, "down"}};
        return channel_set(job_, requests, {"ring", ""});
    }
};

std::byte pattern(int rank, std::size_t end, std::uint64_t epoch, std::size_t place) {
    return static_cast<std::byte>((static_cast<std::size_t>(rank) * 31 + end * 101 + epoch * 7 + place * 13) % 251);
}

TEST_P(MpiJob, IsStartedByMpi) {
    EXPECT_GT(ranks_, 1);
    EXPECT_TRUE(job_.launcher().rfind("Open MPI ", 0) == 0 || job_.launcher().rfind("MPICH ", 0) == 0) << job_.launcher();
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

TEST_P(MpiJob, RingCarriesEveryEpoch) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, std::size_t{4096}, std::size_t{300'000}}) {
        channel_set set = ring(bytes);
        for (std::uint64_t k = 1; k <= 50; ++k) {
            set.for_each([&](auto& c) {
                std::byte* target = c.target(k);
                for (std::size_t i = 0; i < bytes; ++i) target[i] = pattern(me_, c.index(), k, i);
                c.send(k, 0);
            });

            ASSERT_EQ(set.wait(k), status::ok) << set.pending(k);

            set.for_each([&](auto& c) {
                const int from = c.index() == 0 ? next_ : previous_;
                const std::byte* got = c.received(k);
                std::size_t wrong = 0;
                for (std::size_t i = 0; i < bytes; ++i) wrong += got[i] != pattern(from, 1 - c.index(), k, i);
                EXPECT_EQ(wrong, 0u) << bytes << " bytes, epoch " << k << ", end " << c.index();
            });
        }
        const auto counts = set.counts(50);
        ASSERT_EQ(counts.size(), 1u);
        EXPECT_EQ(counts[0].transport, GetParam());
        EXPECT_EQ(counts[0].messages, 100u);
        EXPECT_EQ(counts[0].bytes, 100u * bytes);
        job_.barrier(); // a farewell of an early rank would come in place of an epoch
    }
}

TEST_P(MpiJob, SetsComeAndGo) {
    const std::size_t before = job_.memory().used();
    for (std::uint64_t round = 0; round < 30; ++round) {
        channel_set set = ring(4096);
        set.for_each([&](auto& c) {
            *c.target(1) = pattern(me_, c.index(), round, 0);
            c.send(1, 0);
        });
        ASSERT_EQ(set.wait(1), status::ok) << set.pending(1);
        set.for_each([&](auto& c) {
            EXPECT_EQ(*c.received(1), pattern(c.index() == 0 ? next_ : previous_, 1 - c.index(), round, 0)) << round;
        });
    }
    EXPECT_LT(job_.memory().used(), before + 8 * 8 * 4096) << "closed sets give their memory back";
}

TEST_P(MpiJob, FarewellEndsThePeersWait) {
    channel_set set = ring(64);
    if (me_ == 0) {
        set = channel_set();
    } else {
        set.for_each([](auto& c) { c.send(1, 0); });
        EXPECT_EQ(set.wait(1), next_ == 0 || previous_ == 0 ? status::aborted : status::ok);
    }
    job_.barrier();
}

TEST(MpiSum, SameBitsOverBothTransports) {
    std::vector<std::uint64_t> bits[2];
    for (const int t : {0, 1}) {
        const job j = job::from_environment({.transports = {t == 0 ? "mpi" : "shm"}, .deadline = std::chrono::seconds(30)});
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
        const auto of_zero = j.broadcast(std::string(reinterpret_cast<const char*>(bits[t].data()), bits[t].size() * 8));
        EXPECT_EQ(std::memcmp(of_zero.data(), bits[t].data(), of_zero.size()), 0) << "the same on every rank";
        j.barrier();
    }
    EXPECT_EQ(bits[0], bits[1]);
}

INSTANTIATE_TEST_SUITE_P(Over, MpiJob, testing::Values("mpi", "shm"), [](const auto& which) { return which.param; });

} // namespace
} // namespace halocline::comm
