// SPDX-License-Identifier: Apache-2.0
#include "bodies.hpp"

#include <halocline/comm/slab.hpp>
#include <halocline_test/allocation_counter.hpp>

#include <atomic>
#include <cmath>
#include <limits>

namespace {

using namespace halocline;
using namespace halocline_test;

class Ranks : public testing::TestWithParam<int> {};

TEST_P(Ranks, ChannelsDeliverEveryEpochInOrder) {
    run_threads(GetParam(), [](const job& j) { expect_epochs_in_order(j, 200, j.ranks() <= 2 ? 100'000 : 2'000); });
}

TEST_P(Ranks, PayloadInTheControlLineArrives) {
    run_threads(GetParam(), [](const job& j) { expect_epochs_in_order(j, 16, 2'000); });
}

TEST_P(Ranks, ALateRankChangesNothing) {
    run_threads(GetParam(), [](const job& j) { expect_epochs_in_order(j, 64, 200, j.ranks() / 2); });
}

TEST_P(Ranks, GlobalSumEqualsSerialSumWithTheSameBitsEverywhere) { run_threads(GetParam(), expect_sums_equal_serial); }

INSTANTIATE_TEST_SUITE_P(Threads, Ranks, testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 12));

TEST(GlobalSum, MaximumKeepsNaN) {
    run_threads(3, [](const job& j) {
        global_sum sum(j, 1);
        double v = j.rank() == 1 ? std::numeric_limits<double>::quiet_NaN() : 1.0;

        ASSERT_EQ(sum.maximum({&v, 1}), status::ok);

        EXPECT_TRUE(std::isnan(v));
    });
}

TEST(GlobalSum, DifferentCountsAreWrongData) {
    std::atomic<int> refused{0};
    run_threads(2, [&](const job& j) {
        global_sum sum(j, 8);
        std::vector<double> v(j.rank() == 0 ? 4 : 5, 1.0);

        if (sum(v) == status::wrong_data) ++refused;
    });
    EXPECT_EQ(refused, 2);
}

TEST(Channels, NothingIsAllocatedBetweenSendAndWait) {
    std::atomic<std::uint64_t> before{0}, after{0};
    run_threads(2, [&](const job& j) {
        channel_set set(j, ring(j, 256), {"ring", ""});
        global_sum sum(j, 8);
        double v[3]{1, 2, 3};
        j.barrier();
        std::uint64_t k = 0;
        const auto steps = [&] {
            for (int i = 0; i < 100; ++i) {
                ++k;
                set.for_each([&](auto& c) { c.send(k, ticks()); });
                ASSERT_EQ(set.wait(k), status::ok);
                ASSERT_EQ(sum(v), status::ok);
            }
        };
        steps();
        if (j.rank() == 0) before = allocations();
        ASSERT_EQ(sum(v), status::ok); // both are past set-up now
        ASSERT_EQ(sum(v), status::ok);
        steps();
        if (j.rank() == 0) after = allocations();
        ASSERT_EQ(sum(v), status::ok); // neither goes on before the count is taken
    });
    EXPECT_EQ(before, after);
}

/// The text of the error that every rank gets.
template <class Body>
std::string error_of(int ranks, Body body) {
    std::vector<std::string> texts(ranks);
    run_threads(ranks, [&](const job& j) {
        try {
            body(j);
        } catch (const input_error& e) {
            texts[j.rank()] = e.what();
        }
    });
    for (const std::string& t : texts) EXPECT_EQ(t, texts[0]);
    return texts[0];
}

TEST(Channels, SizesThatDifferAreOneErrorWithBothValues) {
    const std::string text = error_of(3, [](const job& j) {
        auto requests = ring(j, 64);
        if (j.rank() == 1) requests[0].send_bytes = 72;
        channel_set set(j, requests, {"halo", ""});
    });
    EXPECT_EQ(text, "'halo': rank 1 'high' sends 72 bytes, rank 2 'low' expects 64");
}

TEST(Channels, ShapesThatDifferAreOneError) {
    const std::string text = error_of(2, [](const job& j) {
        channel_set set(j, ring(j, 64), {"halo", j.rank() ? "float" : "double"});
    });
    EXPECT_EQ(text, "'halo': the shape differs: rank 0 has 'double', rank 1 has 'float'");
}

TEST(Channels, AnEndThatThePeerDoesNotHaveIsAnErrorAndNoHang) {
    const std::string text = error_of(3, [](const job& j) {
        std::vector<channel_request> none;
        channel_set set(j, j.rank() == 0 ? std::vector<channel_request>{{2, 0, 0, 8, 8, "x"}} : none, {"halo", ""});
    });
    EXPECT_EQ(text, "'halo': rank 0 wants 1 channels with rank 2, which wants 0");
}

TEST(Channels, AfterAnErrorTheJobGoesOn) {
    error_of(2, [](const job& j) { channel_set set(j, ring(j, 8u + j.rank()), {"halo", ""}); });
    run_threads(2, [](const job& j) {
        EXPECT_THROW(channel_set(j, ring(j, 8u + j.rank()), {"halo", ""}), input_error);
        expect_epochs_in_order(j, 64, 100);
    });
}

TEST(Channels, MemoryComesBackAfterBothEndsAreGone) {
    run_threads(2, [](const job& j) {
        const std::size_t before = j.memory().used();
        for (int i = 0; i < 20; ++i) {
            channel_set set(j, ring(j, 4096), {"ring", ""});
        }
        j.barrier();
        { channel_set sweeps(j, {}, {"none", ""}); }
        EXPECT_EQ(j.memory().used(), before);
    });
}

TEST(Channels, APeerThatClosedItsEndAbortsTheWait) {
    run_threads(2, [](const job& j) {
        channel_set set(j, ring(j, 64), {"ring", ""});
        if (j.rank() == 1) {
            set = channel_set();
            return;
        }
        set.for_each([](auto& c) { c.send(1, ticks()); });
        EXPECT_EQ(set.wait(1), status::aborted);
        EXPECT_EQ(set.wait(1), status::aborted) << "sticky";
    });
}

TEST(Job, AbortEndsTheWaitsOfAllWithItsReason) {
    std::atomic<int> told{0};
    EXPECT_THROW(run_threads(3, [&](const job& j) {
        if (j.rank() == 1) {
            j.abort("no more sites");
            throw error("no more sites");
        }
        try {
            j.barrier();
        } catch (const rank_failure& e) {
            EXPECT_EQ(e.culprit(), 1);
            EXPECT_NE(std::string(e.what()).find("no more sites"), std::string::npos) << e.what();
            ++told;
            throw;
        }
    }), error);
    EXPECT_EQ(told, 2);
}

TEST(Job, AWaitEndsAtTheDeadline) {
    job_options options;
    options.deadline = std::chrono::milliseconds(1500); // set-up on a busy machine must not meet it
    std::atomic<bool> timed_out{false}, over{false};
    run_threads(2, [&](const job& j) {
        global_sum sum(j, 1);
        double v = 1;
        if (j.rank() == 1) {
            over.wait(false); // alive, but silent
            return;
        }
        timed_out = sum({&v, 1}) == status::timed_out;
        over = true;
        over.notify_one();
    }, options);
    EXPECT_TRUE(timed_out);
}

TEST(Job, ARankThatLeftIsNamed) {
    run_threads(2, [](const job& j) {
        if (j.rank() == 1) return;
        try {
            j.barrier();
            FAIL() << "nobody was there";
        } catch (const rank_failure& e) {
            EXPECT_EQ(e.culprit(), 1);
            EXPECT_NE(std::string(e.what()).find("left the job"), std::string::npos) << e.what();
        }
    });
}

TEST(Job, UnknownAndUnusableTransportsAreErrors) {
    const auto with = [](const char* t) {
        job_options options;
        options.transports = {t};
        return options;
    };
    EXPECT_THROW(job::single(with("smoke")), input_error);
    EXPECT_THROW(job::single(with("verbs")), input_error);
    EXPECT_THROW(run_threads(2, [](const job&) {}, with("mpi")), input_error);
    EXPECT_THROW(run_threads(2, [](const job&) {}, with("self")), input_error);
}

TEST(Slab, MemoryIsAlignedReusedAndCounted) {
    const job j = job::single();
    slab& memory = j.memory();
    const std::size_t before = memory.used();

    void* a = memory.allocate(1000, 4096);
    void* b = memory.allocate(3 << 20);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % 4096, 0u);
    EXPECT_TRUE(memory.contains(b));
    EXPECT_GT(memory.used(), before);
    memory.deallocate(a, 1000, 4096);
    memory.deallocate(b, 3 << 20);

    EXPECT_EQ(memory.used(), before);
    EXPECT_GE(memory.peak(), before + (3u << 20));
}

TEST(Slab, AFullOneIsAnErrorThatNamesNeedAndRemedy) {
    job_options options;
    options.slab_bytes = 4 << 20;
    const job j = job::single(options);
    try {
        (void)j.memory().allocate(8 << 20);
        FAIL();
    } catch (const error& e) {
        EXPECT_NE(std::string(e.what()).find("need 8 MiB"), std::string::npos) << e.what();
    }
}

} // namespace
