// SPDX-License-Identifier: Apache-2.0
// What the C interface returns for impossible requests: codes and texts, never an exception. The header compiled as
// C++.
#include "errors.hpp"
#include "handles.hpp"
#include "job/job_core.hpp"

#include <halocline.h>
#include <halocline/comm/out_of_memory.hpp>
#include <halocline_test/allocation_counter.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace {

class CErrors : public testing::Test {
  protected:
    CErrors() { EXPECT_EQ(halocline_job_from_environment(nullptr, &job_), HALOCLINE_OK) << halocline_error(); }
    ~CErrors() override { halocline_job_free(job_); }
    halocline_job* job_ = nullptr;
};

void expect_text(const std::string& part) {
    EXPECT_NE(std::string(halocline_error()).find(part), std::string::npos) << halocline_error();
}

/// One rank of 4^4 sites of a double each, which exchanges its faces in t with itself.
halocline_plan_options faces_in_t(const char* name) {
    return {.global = {4, 4, 4, 4},
            .rank_grid = {1, 1, 1, 1},
            .width_low = {0, 0, 0, 1},
            .width_high = {0, 0, 0, 1},
            .open = {},
            .order_by_nodes = 0,
            .self_exchange = 1,
            .bytes_per_site = 8,
            .name = name,
            .type = HALOCLINE_BYTE,
            .parity = 0,
            .fields = 0,
            .rank_order = nullptr};
}

TEST_F(CErrors, AFaceThatThereIsNotHasNoGhosts) {
    const halocline_plan_options options = faces_in_t(nullptr);
    halocline_plan* plan = nullptr;
    ASSERT_EQ(halocline_plan_create(job_, &options, &plan), HALOCLINE_OK) << halocline_error();
    const std::vector<double> field(4 * 4 * 4 * 4, 1.5);

    halocline_plan_start(plan, field.data());
    EXPECT_EQ(halocline_plan_finish(plan), HALOCLINE_OK);

    EXPECT_EQ(*static_cast<const double*>(halocline_plan_ghost(plan, 1)), 1.5);
    for (const int face : {-1, 2}) {
        EXPECT_EQ(halocline_plan_ghost(plan, face), nullptr);
        halocline_face what{};
        EXPECT_EQ(halocline_plan_face(plan, face, &what), HALOCLINE_INPUT_ERROR);
    }
    halocline_plan_free(plan);
}

/// Every function that returns a status, with NULL for its handle.
TEST_F(CErrors, AHandleThatIsNullIsNamed) {
    halocline_job* job = nullptr;
    halocline_connection* connection = nullptr;
    halocline_window* window = nullptr;
    halocline_plan* plan = nullptr;
    halocline_sum* sum = nullptr;
    void* memory = nullptr;
    double value = 0;
    halocline_face face{};
    const halocline_plan_options options = faces_in_t("phi");
    const struct {
        const char *function, *handle;
        halocline_status status;
        std::string text;
    } calls[] = {
#define CALL(handle, function, ...) {#function, handle, function(__VA_ARGS__), halocline_error()}
        CALL("job", halocline_job_barrier, nullptr),
        CALL("job", halocline_allocate, nullptr, 8, &memory),
        CALL("job", halocline_connection_create, nullptr, 0, 0, 0, nullptr, &connection),
        CALL("connection", halocline_connection_connect, nullptr),
        CALL("connection", halocline_send_window_create, nullptr, HALOCLINE_DOUBLE, 1, &value, &window),
        CALL("connection", halocline_recv_window_create, nullptr, HALOCLINE_DOUBLE, 1, &value, &window),
        CALL("window", halocline_window_init, nullptr),
        CALL("window", halocline_window_post, nullptr, 1),
        CALL("window", halocline_window_wait, nullptr),
        CALL("job", halocline_plan_create, nullptr, &options, &plan),
        CALL("plan", halocline_plan_face, nullptr, 0, &face),
        CALL("plan", halocline_plan_finish, nullptr),
        CALL("job", halocline_sum_create, nullptr, 1, &sum),
        CALL("sum", halocline_sum_over_ranks, nullptr, &value, 1),
        CALL("sum", halocline_maximum_over_ranks, nullptr, &value, 1),
        CALL("sum", halocline_sum_finish, nullptr, &value, 1),
        // and for the place of what they make
        CALL("job", halocline_job_from_environment, nullptr, nullptr),
        CALL("communicator", halocline_job_from_mpi, nullptr, 8, nullptr, &job),
        CALL("memory", halocline_allocate, job_, 8, nullptr),
        CALL("connection", halocline_connection_create, job_, 0, 0, 0, nullptr, nullptr),
        CALL("plan", halocline_plan_create, job_, &options, nullptr),
        CALL("sum", halocline_sum_create, job_, 1, nullptr),
#undef CALL
    };

    for (const auto& call : calls) {
        EXPECT_EQ(call.status, HALOCLINE_INPUT_ERROR) << call.function;
        EXPECT_TRUE(call.text.starts_with(std::string("'") + call.handle + "' is NULL")) << call.function << call.text;
    }
}

TEST_F(CErrors, NullIsNamed) {
    EXPECT_EQ(halocline_job_from_environment(nullptr, nullptr), HALOCLINE_INPUT_ERROR);
    expect_text("'job' is NULL");
    halocline_plan* plan = nullptr;
    EXPECT_EQ(halocline_plan_create(job_, nullptr, &plan), HALOCLINE_INPUT_ERROR);
    expect_text("'options' is NULL");
    halocline_job* other = job_;
    EXPECT_EQ(halocline_job_from_mpi(nullptr, 8, nullptr, &other), HALOCLINE_INPUT_ERROR);
    EXPECT_EQ(other, nullptr);
    double value = 2;
    halocline_sum* sum = nullptr;
    ASSERT_EQ(halocline_sum_create(job_, 2, &sum), HALOCLINE_OK);
    EXPECT_EQ(halocline_sum_over_ranks(sum, nullptr, 2), HALOCLINE_INPUT_ERROR);
    expect_text("'values' is NULL");
    EXPECT_EQ(halocline_sum_over_ranks(sum, nullptr, 0), HALOCLINE_OK);
    halocline_sum_start(sum, &value, 1);
    EXPECT_EQ(halocline_sum_finish(sum, nullptr, 1), HALOCLINE_INPUT_ERROR);
    expect_text("'values' is NULL");
    EXPECT_EQ(halocline_sum_finish(sum, &value, 1), HALOCLINE_OK);
    halocline_sum_start(sum, nullptr, 1);
    EXPECT_EQ(halocline_sum_finish(sum, &value, 1), HALOCLINE_MISUSED);
    halocline_sum_free(sum);
}

/// As in a config file.
TEST(CErrorsWithoutAJob, BlanksAroundTransportsDontCount) {
    halocline_job_options options{};
    options.transports = " self, shm ";
    halocline_job* job = nullptr;
    EXPECT_EQ(halocline_job_from_environment(&options, &job), HALOCLINE_OK) << halocline_error();
    halocline_job_free(job);
}

/// The caller's own mistake, as in C++.
TEST_F(CErrors, MoreValuesThanASumHoldsAreAnInputError) {
    std::vector<double> values(5, 1.0);
    const auto starts = [](halocline_sum* sum, double* v, std::size_t n) {
        halocline_sum_start(sum, v, n);
        return halocline_sum_finish(sum, v, n);
    };
    for (const auto call : {halocline_sum_over_ranks, halocline_maximum_over_ranks, +starts}) {
        halocline_sum* sum = nullptr;
        ASSERT_EQ(halocline_sum_create(job_, 4, &sum), HALOCLINE_OK);
        EXPECT_EQ(call(sum, values.data(), 5), HALOCLINE_INPUT_ERROR);
        EXPECT_STREQ(halocline_error(), "'global sum' of 5 values, made for up to 4");
        EXPECT_EQ(call(sum, values.data(), 1), HALOCLINE_INPUT_ERROR) << "a bad status is permanent";
        halocline_sum_free(sum);
    }
}

/// A peer that died with others may be seen to close its end first; the reason is in the failure record.
TEST_F(CErrors, ADeathBehindAClosedEndIsTheCodeToo) {
    using halocline::comm::status;
    const auto checked = [&](status s) {
        return halocline::c::checked(s, job_->value, [] { return std::string("a peer"); });
    };
    EXPECT_EQ(checked(status::aborted), HALOCLINE_ABORTED);
    expect_text("closed its end");

    job_->value.core().publish(status::peer_died, 0, "was killed");

    EXPECT_EQ(checked(status::aborted), HALOCLINE_PEER_DIED);
    expect_text("was killed");
    EXPECT_EQ(halocline_error_rank(), 0);
    EXPECT_EQ(checked(status::wrong_data), HALOCLINE_WRONG_DATA);
    EXPECT_EQ(halocline::c::told_by(status::misused, [] { throw halocline::input_error("a wrong call"); }),
              HALOCLINE_MISUSED);
}

TEST_F(CErrors, ATextForWhichThereIsNoMemoryIsEmpty) {
    const halocline::input_error e(std::string(100'000, 'x')); // more than any text before had
    halocline_status s = HALOCLINE_OK;
    {
        const halocline_test::without_memory none;
        s = halocline::c::guarded([&] { throw e; });
    }

    EXPECT_EQ(s, HALOCLINE_INPUT_ERROR);
    EXPECT_STREQ(halocline_error(), "");
}

/// What a collective function throws on every rank when one is out of memory.
TEST_F(CErrors, ARankWithoutMemoryHasTheCodeOfThisOne) {
    const halocline_status s =
        halocline::c::guarded([] { throw halocline::comm::out_of_memory("rank 1 is out of memory"); });

    EXPECT_EQ(s, HALOCLINE_NO_MEMORY);
    expect_text("rank 1 is out of memory");
}

TEST_F(CErrors, ABadInputThatIsNotNamedIsTheLastError) {
    EXPECT_EQ(halocline_sum_create(job_, 0, nullptr), HALOCLINE_INPUT_ERROR);

    testing::internal::CaptureStderr();
    halocline_say_bad_input("a program", nullptr);

    EXPECT_EQ(testing::internal::GetCapturedStderr(), "a program: 'sum' is NULL\n");
}

TEST_F(CErrors, ModesOfMpiAreListed) {
    halocline_job_options options{};
    options.mpi_mode = "sideways";
    halocline_job* job = nullptr;
    EXPECT_EQ(halocline_job_from_environment(&options, &job), HALOCLINE_INPUT_ERROR);
    expect_text("'sideways'; known are two-sided, one-sided");
}

TEST_F(CErrors, AGridOfOtherRanksIsRefusedWithBothNumbers) {
    halocline_plan_options options{};
    for (int mu = 0; mu < 4; ++mu) {
        options.global[mu] = 8;
        options.rank_grid[mu] = mu == 3 ? 2 : 1;
    }
    options.bytes_per_site = 8;
    halocline_plan* plan = nullptr;
    EXPECT_EQ(halocline_plan_create(job_, &options, &plan), HALOCLINE_INPUT_ERROR);
    EXPECT_EQ(plan, nullptr);
    expect_text("1.1.1.2 is of 2 ranks; the job has 1");
}

TEST_F(CErrors, AFullSlabHasACodeOfItsOwn) {
    halocline_job_options options{};
    options.slab_bytes = std::size_t{16} << 20;
    halocline_job* small = nullptr;
    ASSERT_EQ(halocline_job_from_environment(&options, &small), HALOCLINE_OK) << halocline_error();
    void* memory = nullptr;
    EXPECT_EQ(halocline_allocate(small, std::size_t{64} << 20, &memory), HALOCLINE_SLAB_FULL);
    expect_text("slab: need 64");
    EXPECT_EQ(memory, nullptr);
    halocline_plan_options too_large{};
    for (int mu = 0; mu < 4; ++mu) {
        too_large.global[mu] = 16;
        too_large.rank_grid[mu] = 1;
        too_large.width_low[mu] = too_large.width_high[mu] = 1;
    }
    too_large.self_exchange = 1;
    too_large.bytes_per_site = 1 << 16;
    halocline_plan* plan = nullptr;
    EXPECT_EQ(halocline_plan_create(small, &too_large, &plan), HALOCLINE_SLAB_FULL);
    expect_text("choose a larger slab ([comm] slab_gib, ");
    EXPECT_EQ(plan, nullptr);
    halocline_job_free(small);
}

TEST_F(CErrors, WindowsTellMisuseAndUnlikeEnds) {
    halocline_connection* c = nullptr;
    halocline_window *out = nullptr, *in = nullptr, *bad = nullptr;
    int values[4]{};
    EXPECT_EQ(halocline_connection_create(job_, 7, 0, 0, "seven", &c), HALOCLINE_INPUT_ERROR);
    expect_text("peer 7 is not a rank");
    ASSERT_EQ(halocline_connection_create(job_, 0, 0, 0, "own", &c), HALOCLINE_OK);
    EXPECT_EQ(halocline_send_window_create(c, static_cast<halocline_type>(7), 4, values, &bad), HALOCLINE_INPUT_ERROR);
    ASSERT_EQ(halocline_send_window_create(c, HALOCLINE_INT32, 4, values, &out), HALOCLINE_OK);
    ASSERT_EQ(halocline_recv_window_create(c, HALOCLINE_FLOAT, 4, nullptr, &in), HALOCLINE_OK);
    EXPECT_EQ(halocline_connection_connect(c), HALOCLINE_INPUT_ERROR);
    expect_text("4 of int32");
    expect_text("4 of float32");
    EXPECT_EQ(halocline_window_init(out), HALOCLINE_MISUSED);
    expect_text("connect()");
    halocline_window_free(in);
    halocline_window_free(out);
    halocline_connection_free(c);
}

TEST_F(CErrors, AReceiveWindowIsPostedWithItsSizeOrZero) {
    halocline_connection* c = nullptr;
    halocline_window *out = nullptr, *in = nullptr;
    int from[4]{1, 2, 3, 4}, to[4]{};
    ASSERT_EQ(halocline_connection_create(job_, 0, 0, 0, "own", &c), HALOCLINE_OK);
    ASSERT_EQ(halocline_send_window_create(c, HALOCLINE_INT32, 4, from, &out), HALOCLINE_OK);
    ASSERT_EQ(halocline_recv_window_create(c, HALOCLINE_INT32, 4, to, &in), HALOCLINE_OK);
    ASSERT_EQ(halocline_connection_connect(c), HALOCLINE_OK) << halocline_error();

    for (const std::size_t right : {0, 4}) {
        ASSERT_EQ(halocline_window_init(in), HALOCLINE_OK);
        ASSERT_EQ(halocline_window_init(out), HALOCLINE_OK);
        for (const std::size_t wrong : {std::size_t{3}, std::size_t{5}, ~std::size_t{0}}) {
            EXPECT_EQ(halocline_window_post(in, wrong), HALOCLINE_MISUSED);
            expect_text("connection 'own'");
            expect_text("count " + std::to_string(wrong) + "; of a receive window it is the window's size, 4, or 0");
        }
        EXPECT_EQ(halocline_window_post(out, 3), HALOCLINE_OK) << halocline_error();
        EXPECT_EQ(halocline_window_post(in, right), HALOCLINE_OK) << halocline_error();
        EXPECT_EQ(halocline_window_wait(in), HALOCLINE_OK) << halocline_error();
        EXPECT_EQ(halocline_window_wait(out), HALOCLINE_OK) << halocline_error();
        EXPECT_EQ(halocline_window_count(in), 3U);
    }

    halocline_window_free(in);
    halocline_window_free(out);
    halocline_connection_free(c);
}

TEST_F(CErrors, APlanWithoutAnyWidthIsRefused) {
    halocline_plan_options options = faces_in_t("phi");
    options.width_low[3] = options.width_high[3] = 0;
    halocline_plan* plan = nullptr;

    EXPECT_EQ(halocline_plan_create(job_, &options, &plan), HALOCLINE_INPUT_ERROR);

    EXPECT_EQ(plan, nullptr);
    expect_text("width_low and width_high are 0 in every dimension: 1 or more is expected in one at least");
}

TEST_F(CErrors, NoNumberOfBytesIsSmallBecauseItWraps) {
    halocline_plan_options options = faces_in_t("large");
    for (const std::size_t bytes : {std::size_t{1} << 52, std::size_t{1} << 60, ~std::size_t{0}}) {
        options.bytes_per_site = bytes;
        halocline_plan* plan = nullptr;
        EXPECT_EQ(halocline_plan_create(job_, &options, &plan), HALOCLINE_INPUT_ERROR) << bytes;
        expect_text("64 sites, 1 x " + std::to_string(bytes) + " bytes each, is larger than any memory");
    }

    halocline_connection* c = nullptr;
    halocline_window *out = nullptr, *in = nullptr, *bad = nullptr;
    double values[4]{};
    ASSERT_EQ(halocline_connection_create(job_, 0, 0, 0, "own", &c), HALOCLINE_OK);
    EXPECT_EQ(halocline_send_window_create(c, HALOCLINE_DOUBLE, std::size_t{1} << 61, nullptr, &bad),
              HALOCLINE_INPUT_ERROR);
    expect_text("larger than any memory");
    ASSERT_EQ(halocline_send_window_create(c, HALOCLINE_DOUBLE, 4, values, &out), HALOCLINE_OK);
    ASSERT_EQ(halocline_recv_window_create(c, HALOCLINE_DOUBLE, 4, nullptr, &in), HALOCLINE_OK);
    ASSERT_EQ(halocline_connection_connect(c), HALOCLINE_OK) << halocline_error();
    ASSERT_EQ(halocline_window_init(out), HALOCLINE_OK);
    EXPECT_EQ(halocline_window_post(out, std::size_t{1} << 61), HALOCLINE_MISUSED);
    expect_text("more elements than the window has");
    halocline_window_free(in);
    halocline_window_free(out);
    halocline_connection_free(c);

    halocline_job_options large{};
    large.slab_bytes = ~std::size_t{0};
    halocline_job* job = nullptr;
    EXPECT_EQ(halocline_job_from_environment(&large, &job), HALOCLINE_INPUT_ERROR);
    expect_text("a process has 134217728 MiB of address space");
}

TEST_F(CErrors, AFieldThatIsNullIsMisuse) {
    const halocline_plan_options options = faces_in_t("phi");
    for (const bool packed : {false, true}) {
        halocline_plan* plan = nullptr;
        ASSERT_EQ(halocline_plan_create(job_, &options, &plan), HALOCLINE_OK) << halocline_error();
        if (packed) {
            halocline_plan_start_packed(plan, nullptr, nullptr);
        } else {
            halocline_plan_start(plan, nullptr);
        }
        EXPECT_EQ(halocline_plan_finish(plan), HALOCLINE_MISUSED);
        expect_text(packed ? "halo 'phi': halocline_plan_start_packed: 'pack' is NULL"
                           : "halo 'phi': halocline_plan_start: 'field' is NULL");
        halocline_plan_free(plan);
    }
}

void pack_twos(void* /*context*/, int /*face*/, const int32_t* /*sites*/, int64_t count, void* target) {
    std::fill_n(static_cast<double*>(target), count, 2.0);
}

TEST_F(CErrors, AStartOfOtherFieldsThanThePlansIsMisuse) {
    const std::vector<double> field(4 * 4 * 4 * 4);
    const void* const fields[]{field.data(), nullptr};
    const auto expect_told = [&](int of, const char* text, const auto& misuse) {
        halocline_plan_options options = faces_in_t("phi");
        options.fields = of;
        halocline_plan* plan = nullptr;
        ASSERT_EQ(halocline_plan_create(job_, &options, &plan), HALOCLINE_OK) << halocline_error();
        misuse(plan);
        EXPECT_EQ(halocline_plan_finish(plan), HALOCLINE_MISUSED);
        expect_text((std::string("halo 'phi': ") + text).c_str());
        halocline_plan_free(plan);
    };

    expect_told(2, "halocline_plan_start sends one field; the plan was made for several",
                [&](halocline_plan* plan) { halocline_plan_start(plan, field.data()); });
    expect_told(2,
                "halocline_plan_start_packed fills messages of one field; the plan was made for several, whose targets "
                "halocline_plan_target tells",
                [](halocline_plan* plan) { halocline_plan_start_packed(plan, pack_twos, nullptr); });
    expect_told(1, "halocline_plan_start_fields: 'count' is not that of the plan's options",
                [&](halocline_plan* plan) { halocline_plan_start_fields(plan, fields, 2); });
    expect_told(1, "halocline_plan_start_fields: 'fields' is NULL",
                [](halocline_plan* plan) { halocline_plan_start_fields(plan, nullptr, 1); });
    expect_told(2, "halocline_plan_start_fields: a field is NULL",
                [&](halocline_plan* plan) { halocline_plan_start_fields(plan, fields, 2); });
}

TEST_F(CErrors, OfSeveralMisusesTheFirstIsTold) {
    const halocline_plan_options options = faces_in_t("phi");
    const std::vector<double> field(4 * 4 * 4 * 4);
    const auto expect_told = [&](const char* text, const auto& misuse) {
        halocline_plan* plan = nullptr;
        ASSERT_EQ(halocline_plan_create(job_, &options, &plan), HALOCLINE_OK) << halocline_error();
        misuse(plan);
        for (int again = 0; again < 2; ++again) {
            EXPECT_EQ(halocline_plan_finish(plan), HALOCLINE_MISUSED);
            expect_text(text);
        }
        halocline_plan_free(plan);
    };

    expect_told("halo 'phi': start() before finish() of the last exchange", [&](halocline_plan* plan) {
        halocline_plan_start(plan, field.data());
        halocline_plan_start(plan, field.data());
        halocline_plan_start(plan, nullptr);
    });
    expect_told("halo 'phi': halocline_plan_start: 'field' is NULL", [](halocline_plan* plan) {
        halocline_plan_start(plan, nullptr);
        halocline_plan_start_packed(plan, nullptr, nullptr);
    });
}

TEST_F(CErrors, StepsAllocateNothing) {
    halocline_connection* c = nullptr;
    halocline_window *out = nullptr, *in = nullptr;
    std::vector<double> from(100, 3.0), to(100);
    ASSERT_EQ(halocline_connection_create(job_, 0, 0, 0, nullptr, &c), HALOCLINE_OK);
    ASSERT_EQ(halocline_send_window_create(c, HALOCLINE_DOUBLE, 100, from.data(), &out), HALOCLINE_OK);
    ASSERT_EQ(halocline_recv_window_create(c, HALOCLINE_DOUBLE, 100, to.data(), &in), HALOCLINE_OK);
    ASSERT_EQ(halocline_connection_connect(c), HALOCLINE_OK) << halocline_error();

    const halocline_plan_options options = faces_in_t(nullptr);
    halocline_plan* plan = nullptr;
    halocline_sum* sum = nullptr;
    ASSERT_EQ(halocline_plan_create(job_, &options, &plan), HALOCLINE_OK) << halocline_error();
    ASSERT_EQ(halocline_sum_create(job_, 3, &sum), HALOCLINE_OK) << halocline_error();
    const std::vector<double> field(4 * 4 * 4 * 4, 1.5);
    double values[3]{1, 2, 3};
    const auto finish = [&] {
        while (halocline_plan_test(plan) == 0) {
        }
        return halocline_plan_finish(plan);
    };

    int bad = 0;
    const std::uint64_t made = halocline_test::allocations_in([&] {
        for (int k = 0; k < 10; ++k) {
            bad += halocline_window_init(in) + halocline_window_init(out) + halocline_window_post(out, 100) +
                   halocline_window_post(in, 0) + halocline_window_wait(in) + halocline_window_wait(out);
            halocline_plan_start(plan, field.data());
            bad += finish();
            halocline_plan_start_packed(plan, pack_twos, nullptr);
            bad += finish();
            bad += halocline_sum_over_ranks(sum, values, 3) + halocline_maximum_over_ranks(sum, values, 2);
            halocline_sum_start(sum, values, 3);
            while (halocline_sum_test(sum) == 0) {
            }
            bad += halocline_sum_finish(sum, values, 3);
        }
    });

    EXPECT_EQ(bad, 0);
    EXPECT_EQ(made, 0U);
    EXPECT_EQ(to, from);
    EXPECT_EQ(*static_cast<const double*>(halocline_plan_ghost(plan, 0)), 2);
    EXPECT_EQ(values[2], 3);
    halocline_sum_free(sum);
    halocline_plan_free(plan);
    halocline_connection_free(c); // before its windows: any order works
    halocline_window_free(out);
    halocline_window_free(in);
}

} // namespace
