// SPDX-License-Identifier: Apache-2.0
// Sets that end early, disagree at set-up, come and go; and the sums that are made of them.
#include "contender.hpp"
#include "bodies.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/slab.hpp>

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace halocline;
using namespace halocline_test;

/// Is that rank a neighbour in the ring?
bool is_neighbour(const job& j, int of) { return (j.rank() + 1) % j.ranks() == of || (of + 1) % j.ranks() == j.rank(); }

TEST(Ending, AFarewellEndsThePeersWaitAndAllThatWasSentBeforeArrives) {
    on_every_rank([](const job& j) {
        if (j.ranks() == 1) GTEST_SKIP() << "a rank that says farewell to itself waits for nobody";
        const tape t(200);
        for (int round = 0; round < 10; ++round) {
            channel_set set(j, ring(j, 200), {"ring", ""});
            fill_and_send(set, t, j.rank(), 1);
            wait_for(j, set, 1);
            EXPECT_EQ(wrong_messages(set, t, 1), 0);
            if (j.rank() == 1) {
                set = channel_set();
            } else {
                const status expected = is_neighbour(j, 1) ? status::aborted : status::ok;
                fill_and_send(set, t, j.rank(), 2);
                EXPECT_EQ(set.wait(2), expected) << "rank " << j.rank();
                EXPECT_EQ(set.wait(2), expected) << "sticky";
                EXPECT_EQ(set.state(), expected);
            }
        }
    });
}

// As when an exception leaves a plan between start and finish: small messages, and some that are under way for a while.
TEST(Ending, AnEndThatLeavesAfterItsSendDeliversItAndEndsThePeersNextWait) {
    on_every_rank([](const job& j) {
        if (j.ranks() == 1) GTEST_SKIP() << "a rank that says farewell to itself waits for nobody";
        for (const std::size_t bytes : {std::size_t{200}, std::size_t{3} << 20}) {
            const tape t(bytes);
            for (int round = 0; round < 3; ++round) {
                channel_set set(j, ring(j, bytes), {"ring", ""});
                fill_and_send(set, t, j.rank(), 1);
                if (j.rank() == 1) {
                    set = channel_set();
                } else {
                    wait_for(j, set, 1);
                    EXPECT_EQ(wrong_messages(set, t, 1), 0);
                    const status expected = is_neighbour(j, 1) ? status::aborted : status::ok;
                    set.for_each([](auto& c) { c.send(2, ticks()); });
                    EXPECT_EQ(set.wait(2), expected) << "rank " << j.rank();
                }
                j.barrier(); // the job itself continues
            }
        }
    });
}

TEST(Ending, AnEndThatNeverSentSaysFarewellToo) {
    on_every_rank([](const job& j) {
        if (j.ranks() == 1) GTEST_SKIP() << "needs two ranks";
        channel_set set(j, ring(j, 64), {"ring", ""});
        if (j.rank() == 0) {
            set = channel_set();
        } else {
            set.for_each([](auto& c) { c.send(1, ticks()); });
            EXPECT_EQ(set.wait(1), is_neighbour(j, 0) ? status::aborted : status::ok) << "rank " << j.rank();
        }
    });
}

TEST(Ending, AFarewellBehindAPeerThatIsMissingIsSeenAtOnce) {
    on_every_rank([](const job& j) {
        if (j.ranks() < 3) GTEST_SKIP() << "needs three ranks";
        std::vector<channel_request> requests; // rank 0: first with rank 1, then with rank 2
        if (j.rank() == 0) requests = {{1, 1, 0, 64, 64, "silent"}, {2, 2, 0, 64, 64, "leaving"}};
        if (j.rank() == 1 || j.rank() == 2) requests = {{0, 0, static_cast<std::uint32_t>(j.rank()), 64, 64, "zero"}};
        channel_set set(j, requests, {"star", ""});
        if (j.rank() == 2) set = channel_set();
        if (j.rank() == 0) {
            set.for_each([](auto& c) { c.send(1, ticks()); });
            EXPECT_EQ(set.wait(1), status::aborted) << "not the deadline, nor the silent one's farewell";
        }
        j.barrier(); // rank 1 is silent until then
    });
}

TEST(Ending, MemoryComesBackAfterBothEndsAreGone) {
    on_every_rank([](const job& j) {
        const std::size_t before = j.memory().used();
        constexpr std::size_t bytes = 100'000;
        std::size_t most = 0;
        for (int round = 0; round < 30; ++round) {
            channel_set set(j, ring(j, bytes), {"ring", ""});
            set.for_each([](auto& c) { c.send(1, ticks()); });
            wait_for(j, set, 1);
            most = std::max(most, j.memory().used() - before);
        }
        // Farewells may be under way: those of a few sets at a time, not of thirty.
        EXPECT_LT(most, 10 * 2 * 3 * bytes);
    });
}

/// Expects that every rank gets an input_error with this text.
void expect_refused(const job& j, const std::vector<channel_request>& requests, const std::string& shape,
                    const std::string& expected) {
    std::string text;
    try {
        const channel_set set(j, requests, {"halo", shape});
    } catch (const input_error& e) {
        text = e.what();
    }
    EXPECT_EQ(text, expected) << "rank " << j.rank();
}

TEST(Ending, EndsThatDisagreeAreRefusedWithBothValuesAndTheJobGoesOn) {
    on_every_rank([](const job& j) {
        if (j.ranks() == 1) GTEST_SKIP() << "needs two ranks";
        const bool one = j.rank() == 1;
        auto longer = ring(j, 64);
        if (one) longer[0].send_bytes = 72;
        const std::string remedy =
            "; both ranks must describe the same exchange: the same lattice, cut, widths, choice of "
            "sites and bytes per site";
        expect_refused(j, longer, "", // the lowest rank that noticed reports
                       (j.ranks() == 2 ? "'halo': rank 0 'low' expects 64 bytes, rank 1 'high' sends 72"
                                       : "'halo': rank 1 'high' sends 72 bytes, rank 2 'low' expects 64") +
                           remedy);
        expect_refused(
            j, ring(j, 64), one ? "float" : "double",
            "'halo': the shape differs: rank 0 has 'double', rank 1 has 'float'; both ranks must describe the "
            "same fields: their number, and their bytes per site");
        auto fewer = ring(j, 64);
        if (one) fewer.clear();
        expect_refused(j, fewer, "",
                       "'halo': rank 0 names rank 1 in " + std::string(j.ranks() == 2 ? "2 requests" : "1 request") +
                           ", which names it in 0; each must name the other, equally often");

        channel_set set(j, ring(j, 64), {"ring", ""});
        set.for_each([](auto& c) { c.send(1, ticks()); });
        EXPECT_EQ(set.wait(1), status::ok);
    });
}

TEST(Ending, RefusedSetsKeepNoMemory) {
    on_every_rank([](const job& j) {
        if (j.ranks() == 1) GTEST_SKIP() << "needs two ranks";
        constexpr std::size_t bytes = 100'000;
        const std::size_t before = j.memory().used();
        for (int round = 0; round < 10; ++round)
            EXPECT_THROW(channel_set(j, ring(j, bytes), {"halo", j.rank() == 1 ? "float" : "double"}), input_error);
        EXPECT_LT(j.memory().used(), before + 2 * 2 * 3 * bytes) << "what two of them take";
    });
}

TEST(Sum, EqualsTheSerialOneWithTheSameBitsEverywhere) { on_every_rank(expect_sums_equal_serial); }

TEST(Sum, OfDifferentNumbersOfValuesIsAnErrorWithBothNumbersLongBeforeTheDeadline) {
    on_every_rank([](const job& j) {
        if (j.ranks() == 1) GTEST_SKIP() << "needs two ranks";
        constexpr std::size_t pairs[][2] = {{1, 2}, {2, 3}, {8, 1}, {4, 5}}; // in one set of channels or in two
        for (const auto& [zero, others] : pairs) {
            global_sum sum(j, 8);
            std::vector<double> values(5, 1.0);
            EXPECT_EQ(sum(values), status::ok);
            values.resize(j.rank() == 0 ? zero : others);

            EXPECT_EQ(sum(values), status::wrong_data) << zero << " and " << others << " on rank " << j.rank();

            const std::string text = sum.pending();
            EXPECT_NE(text.find("rank " + std::to_string(j.rank()) + " sums " + std::to_string(values.size())),
                      std::string::npos)
                << text;
            EXPECT_NE(text.find(" sums " + std::to_string(j.rank() == 0 ? others : zero)), std::string::npos) << text;
            j.barrier();
        }
    });
}

} // namespace
