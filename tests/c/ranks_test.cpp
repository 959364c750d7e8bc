// SPDX-License-Identifier: Apache-2.0
// Two ranks through the C interface: what one of them finds before and after the other has called.
#include <halocline.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

class CRanks : public testing::Test {
  protected:
    CRanks() {
        EXPECT_EQ(halocline_job_from_environment(nullptr, &job_), HALOCLINE_OK) << halocline_error();
        EXPECT_EQ(halocline_job_ranks(job_), 2);
    }
    ~CRanks() override { halocline_job_free(job_); }
    [[nodiscard]] bool first() const { return halocline_job_rank(job_) == 0; }
    void meet() { ASSERT_EQ(halocline_job_barrier(job_), HALOCLINE_OK) << halocline_error(); }

    halocline_job* job_ = nullptr;
};

/// Whatever one rank was given: the other would wait for it until the deadline.
TEST(CRanksWithoutAJob, BadArgumentsOfOneRankAreTheErrorOfBoth) {
    const bool first = std::string(std::getenv("HALOCLINE_RANK")) == "0";
    const auto expect_refusal = [&](const halocline_job_options& of_rank_1, bool has_place, const std::string& text) {
        const halocline_job_options good{};
        halocline_job* job = nullptr;
        EXPECT_EQ(halocline_job_from_environment(first ? &good : &of_rank_1, first || has_place ? &job : nullptr),
                  HALOCLINE_INPUT_ERROR);
        EXPECT_EQ(job, nullptr);
        const std::string error = halocline_error();
        EXPECT_TRUE(error.starts_with("rank 1 on ")) << error;
        EXPECT_NE(error.find(text), std::string::npos) << error;
    };
    halocline_job_options late{}, sideways{};
    late.deadline_ms = -1;
    sideways.mpi_mode = "sideways";

    expect_refusal(late, true, "deadline_ms = -1; milliseconds");
    expect_refusal(sideways, true, "unknown mode of MPI 'sideways'");
    expect_refusal({}, false, "'job' is NULL");
}

TEST_F(CRanks, ReceiveWindowTellsWhenItsMessageIsThere) {
    halocline_connection* c = nullptr;
    halocline_window* w = nullptr;
    std::array<double, 4> values{};
    ASSERT_EQ(halocline_connection_create(job_, first() ? 1 : 0, 5, 5, nullptr, &c), HALOCLINE_OK);
    if (first()) {
        values = {1, 2, 3, 4};
        ASSERT_EQ(halocline_send_window_create(c, HALOCLINE_DOUBLE, 4, values.data(), &w), HALOCLINE_OK);
    } else {
        ASSERT_EQ(halocline_recv_window_create(c, HALOCLINE_DOUBLE, 4, values.data(), &w), HALOCLINE_OK);
    }
    ASSERT_EQ(halocline_connection_connect(c), HALOCLINE_OK) << halocline_error();
    ASSERT_EQ(halocline_window_init(w), HALOCLINE_OK);
    if (!first()) {
        ASSERT_EQ(halocline_window_post(w, 0), HALOCLINE_OK);
        EXPECT_EQ(halocline_window_test(w), 0);
    }
    meet(); // only now is anything sent

    if (first()) {
        ASSERT_EQ(halocline_window_post(w, 3), HALOCLINE_OK);
    } else {
        while (halocline_window_test(w) == 0) {
        }
    }
    EXPECT_EQ(halocline_window_wait(w), HALOCLINE_OK) << halocline_error();

    if (!first()) {
        EXPECT_EQ(halocline_window_count(w), 3U);
        EXPECT_EQ(values, (std::array<double, 4>{1, 2, 3, 0}));
    }
    meet();
    halocline_window_free(w);
    halocline_connection_free(c);
}

/// A plan of one double per site on a box of 2.2.2.extent, cut in t over two ranks.
halocline_plan_options cut_in_t(int extent, const char* name) {
    halocline_plan_options options{};
    for (int mu = 0; mu < 4; ++mu) {
        options.global[mu] = mu == 3 ? extent : 2;
        options.rank_grid[mu] = mu == 3 ? 2 : 1;
    }
    options.width_low[3] = options.width_high[3] = 1;
    options.bytes_per_site = sizeof(double);
    options.name = name;
    return options;
}

TEST_F(CRanks, PlanTellsWhenItsGhostsAreThere) {
    const halocline_plan_options options = cut_in_t(4, "polled");
    halocline_plan* plan = nullptr;
    ASSERT_EQ(halocline_plan_create(job_, &options, &plan), HALOCLINE_OK) << halocline_error();
    const std::vector<double> field(16, first() ? 1.0 : 2.0);
    if (!first()) {
        halocline_plan_start(plan, field.data());
        EXPECT_EQ(halocline_plan_test(plan), 0);
    }
    meet(); // only now does rank 0 start

    if (first()) halocline_plan_start(plan, field.data());
    int arrived = 0, faces[8];
    while (halocline_plan_test(plan) == 0) arrived += halocline_plan_completed(plan, faces);
    EXPECT_EQ(halocline_plan_finish(plan), HALOCLINE_OK) << halocline_error();
    arrived += halocline_plan_completed(plan, faces);
    EXPECT_EQ(arrived, 2);
    EXPECT_EQ(halocline_plan_completed(plan, faces), 0);

    ASSERT_EQ(halocline_plan_faces(plan), 2);
    for (int face = 0; face < 2; ++face)
        EXPECT_EQ(*static_cast<const double*>(halocline_plan_ghost(plan, face)), first() ? 2.0 : 1.0);
    meet();
    halocline_plan_free(plan);
}

TEST_F(CRanks, APlanOfOneParityDescribesItself) {
    halocline_plan_options options = cut_in_t(4, "odd");
    options.type = HALOCLINE_DOUBLE;
    options.parity = 2;
    halocline_plan* plan = nullptr;
    ASSERT_EQ(halocline_plan_create(job_, &options, &plan), HALOCLINE_OK) << halocline_error();
    halocline_face face{};
    ASSERT_EQ(halocline_plan_face(plan, 0, &face), HALOCLINE_OK);
    EXPECT_EQ(face.ghost_sites, 4) << "half of them";
    const std::size_t length = halocline_plan_describe(plan, nullptr, 0);
    std::vector<char> text(length + 1, 'x');
    EXPECT_EQ(halocline_plan_describe(plan, text.data(), text.size()), length);
    EXPECT_EQ(std::strlen(text.data()), length);
    EXPECT_NE(std::strstr(text.data(), "halo 'odd', 8 bytes per site"), nullptr) << text.data();
    char start[9];
    EXPECT_EQ(halocline_plan_describe(plan, start, sizeof start), length);
    EXPECT_STREQ(start, "halo 'od");
    meet();
    halocline_plan_free(plan);

    options.type = first() ? HALOCLINE_DOUBLE : HALOCLINE_INT64; // of as many bytes
    EXPECT_EQ(halocline_plan_create(job_, &options, &plan), HALOCLINE_INPUT_ERROR);
    EXPECT_NE(std::strstr(halocline_error(), "8 bytes per site of float64"), nullptr) << halocline_error();
    EXPECT_NE(std::strstr(halocline_error(), "8 bytes per site of int64"), nullptr) << halocline_error();
    options.parity = 3;
    EXPECT_EQ(halocline_plan_create(job_, &options, &plan), HALOCLINE_INPUT_ERROR);
    EXPECT_STREQ(halocline_error(), "parity is 3: 0 (all sites), 1 (even) or 2 (odd) is expected");
}

TEST_F(CRanks, AreOrderedAsTheCallerSays) {
    halocline_plan_options options = cut_in_t(4, "backwards");
    const std::array<int, 2> backwards{1, 0}, twice{0, 0};
    options.rank_order = backwards.data();
    halocline_plan* plan = nullptr;
    ASSERT_EQ(halocline_plan_create(job_, &options, &plan), HALOCLINE_OK) << halocline_error();
    std::array<int, 4> begin{}, extent{};
    halocline_plan_box(plan, begin.data(), extent.data());
    EXPECT_EQ(begin[3], first() ? 2 : 0);
    EXPECT_EQ(extent[3], 2);
    meet();
    halocline_plan_free(plan);

    options.rank_order = first() ? backwards.data() : nullptr;
    EXPECT_EQ(halocline_plan_create(job_, &options, &plan), HALOCLINE_INPUT_ERROR);
    options.rank_order = twice.data();
    EXPECT_EQ(halocline_plan_create(job_, &options, &plan), HALOCLINE_INPUT_ERROR);
    options.rank_order = backwards.data();
    options.order_by_nodes = 1;
    EXPECT_EQ(halocline_plan_create(job_, &options, &plan), HALOCLINE_INPUT_ERROR);
    EXPECT_STREQ(halocline_error(), "order_by_nodes and rank_order are both set: at most one is expected");
}

TEST_F(CRanks, SeveralFieldsTravelInOneMessage) {
    halocline_plan_options options = cut_in_t(4, "pair");
    options.fields = 2;
    halocline_plan* plan = nullptr;
    ASSERT_EQ(halocline_plan_create(job_, &options, &plan), HALOCLINE_OK) << halocline_error();
    halocline_face face{};
    ASSERT_EQ(halocline_plan_face(plan, 0, &face), HALOCLINE_OK);
    const auto sites = static_cast<std::size_t>(face.ghost_sites);
    const double own = first() ? 1 : 2, other = 3 - own;
    const std::vector<double> x(16, own), y(16, own + 10);
    const void* fields[]{x.data(), y.data()};
    EXPECT_EQ(halocline_plan_target(plan, 2), nullptr);
    for (const bool filled : {false, true, false}) {
        if (filled) {
            for (int f = 0; f < 2; ++f) {
                auto* const target = static_cast<double*>(halocline_plan_target(plan, f));
                std::fill_n(target, sites, own + 20);
                std::fill_n(target + sites, sites, own + 30);
            }
            halocline_plan_start_filled(plan);
        } else {
            halocline_plan_start_fields(plan, fields, 2);
        }
        ASSERT_EQ(halocline_plan_finish(plan), HALOCLINE_OK) << halocline_error();
        for (int f = 0; f < 2; ++f) {
            const auto* const ghost = static_cast<const double*>(halocline_plan_ghost(plan, f));
            for (std::size_t i = 0; i < sites; ++i) {
                EXPECT_EQ(ghost[i], other + (filled ? 20 : 0));
                EXPECT_EQ(ghost[sites + i], other + (filled ? 30 : 10));
            }
        }
    }
    meet();
    halocline_plan_free(plan);

    options.fields = first() ? 2 : 3;
    EXPECT_EQ(halocline_plan_create(job_, &options, &plan), HALOCLINE_INPUT_ERROR);
    options.fields = -1;
    EXPECT_EQ(halocline_plan_create(job_, &options, &plan), HALOCLINE_INPUT_ERROR);
}

// On both ranks, whichever was given something else: the other would wait for the one that left.
TEST_F(CRanks, APlanThatOneRankIsRefusedIsRefusedOnBoth) {
    const halocline_plan_options good = cut_in_t(6, "refused");
    halocline_plan_options three = good;
    three.rank_grid[3] = 3;
    halocline_plan* plan = nullptr;
    const auto expect_refusal = [&](const halocline_plan_options* of_rank_1, halocline_plan** place_of_rank_1,
                                    const std::string& text) {
        EXPECT_EQ(halocline_plan_create(job_, first() ? &good : of_rank_1, first() ? &plan : place_of_rank_1),
                  HALOCLINE_INPUT_ERROR);
        EXPECT_EQ(halocline_error(), text);
        EXPECT_EQ(plan, nullptr);
    };

    expect_refusal(&three, &plan, "rank_grid 1.1.1.3 is of 3 ranks; the job has 2");
    expect_refusal(nullptr, &plan, "'options' is NULL");
    expect_refusal(&good, nullptr, "'plan' is NULL");
    ASSERT_EQ(halocline_plan_create(job_, &good, &plan), HALOCLINE_OK) << halocline_error();
    halocline_plan_free(plan);
}

TEST_F(CRanks, ASumThatOneRankHasNoPlaceForIsRefusedOnBoth) {
    halocline_sum* sum = nullptr;
    EXPECT_EQ(halocline_sum_create(job_, 1, first() ? &sum : nullptr), HALOCLINE_INPUT_ERROR);
    EXPECT_STREQ(halocline_error(), "'sum' is NULL");
    EXPECT_EQ(sum, nullptr);
}

// The other would wait for its values until the deadline.
TEST_F(CRanks, ValuesThatAreNullOnOneRankEndTheSumOfBoth) {
    for (const std::size_t count : {2, 5}) {
        for (const auto call : {halocline_sum_over_ranks, halocline_maximum_over_ranks}) {
            halocline_sum* sum = nullptr;
            ASSERT_EQ(halocline_sum_create(job_, 5, &sum), HALOCLINE_OK) << halocline_error();
            std::array<double, 5> values{};

            const halocline_status s = call(sum, first() ? values.data() : nullptr, count);

            EXPECT_EQ(s, first() ? HALOCLINE_WRONG_DATA : HALOCLINE_INPUT_ERROR) << halocline_error();
            const std::string told = first() ? "rank 1 " : "'values' is NULL";
            EXPECT_NE(std::string(halocline_error()).find(told), std::string::npos) << halocline_error();
            meet();
            halocline_sum_free(sum);
        }
    }
}

TEST_F(CRanks, AbortEndsTheOtherRanksWaitWithItsReason) {
    halocline_sum* sum = nullptr;
    ASSERT_EQ(halocline_sum_create(job_, 1, &sum), HALOCLINE_OK) << halocline_error();
    if (first()) {
        halocline_job_abort(job_, "no more sites");
    } else {
        double value = 1;
        EXPECT_EQ(halocline_sum_over_ranks(sum, &value, 1), HALOCLINE_ABORTED);
        EXPECT_NE(std::string(halocline_error()).find("no more sites"), std::string::npos) << halocline_error();
        EXPECT_EQ(halocline_error_rank(), 0);
    }
    halocline_sum_free(sum);
}

} // namespace
