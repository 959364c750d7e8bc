// SPDX-License-Identifier: Apache-2.0
// Ghosts in a C program's own arrays: every site of every array is compared with what its coordinates say.
#include <halocline.h>

#include <halocline_test/allocation_counter.hpp>
#include <halocline_test/environment_variable.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using coordinates = std::array<int, 4>;

constexpr coordinates global{5, 4, 3, 8};
constexpr double untouched = -1;

/// What a site has, in any array and component; not symmetric in the dimensions.
double value_of(const coordinates& x, int array, int component) {
    return x[0] + 10. * x[1] + 100. * x[2] + 1000. * x[3] + 1e5 * array + 1e6 * component;
}

class CShells : public testing::Test {
  protected:
    CShells() {
        EXPECT_EQ(halocline_job_from_environment(nullptr, &job_), HALOCLINE_OK) << halocline_error();
        for (int mu = 0; mu < 4; ++mu) {
            options_.global[mu] = global[static_cast<std::size_t>(mu)];
            options_.rank_grid[mu] = mu == 3 ? halocline_job_ranks(job_) : 1;
        }
        options_.width_low[0] = options_.width_high[3] = 1;
        options_.width_low[3] = 2;
        options_.type = HALOCLINE_DOUBLE;
        options_.name = "psi";
    }
    ~CShells() override { halocline_job_free(job_); }
    void meet() { ASSERT_EQ(halocline_job_barrier(job_), HALOCLINE_OK) << halocline_error(); }

    /// Makes `arrays` arrays of as many elements as the options ask for, and a plan of `count` exchanges.
    void make(int count, int arrays, bool in_slab) {
        ASSERT_EQ(halocline_shell_box(job_, &options_, first_.data(), extent_.data(), &sites_), HALOCLINE_OK)
            << halocline_error();
        components_ = std::max(options_.components, 1);
        const auto elements = static_cast<std::size_t>(sites_ * components_);
        for (int i = 0; i < arrays; ++i) {
            void* memory = nullptr;
            if (in_slab)
                ASSERT_EQ(halocline_allocate(job_, elements * sizeof(double), &memory), HALOCLINE_OK);
            else
                memory = owned_.emplace_back(elements).data();
            arrays_.push_back(memory);
        }
        ASSERT_EQ(halocline_shell_create(job_, &options_, count, arrays_.data(), &shell_), HALOCLINE_OK)
            << halocline_error();
    }
    void unmake(bool in_slab) {
        meet(); // nobody writes any more
        halocline_shell_free(shell_);
        if (in_slab)
            for (void* const memory : arrays_)
                halocline_deallocate(job_, memory, static_cast<std::size_t>(sites_ * components_) * sizeof(double));
        arrays_.clear();
        owned_.clear();
    }
    double* array(int i) { return static_cast<double*>(arrays_[static_cast<std::size_t>(i)]); }
    [[nodiscard]] bool is_own(const coordinates& x) const {
        for (std::size_t mu = 0; mu < 4; ++mu)
            if (x[mu] < first_[mu] || x[mu] >= first_[mu] + extent_[mu]) return false;
        return true;
    }
    template <class Visit> // visit(x) for all sites of the box grown by the widths
    void for_grown(Visit&& visit) {
        coordinates x;
        const auto low = [&](std::size_t mu) { return first_[mu] - options_.width_low[mu]; };
        const auto high = [&](std::size_t mu) { return first_[mu] + extent_[mu] + options_.width_high[mu]; };
        for (x[3] = low(3); x[3] < high(3); ++x[3])
            for (x[2] = low(2); x[2] < high(2); ++x[2])
                for (x[1] = low(1); x[1] < high(1); ++x[1])
                    for (x[0] = low(0); x[0] < high(0); ++x[0]) visit(x);
    }
    /// Own sites get their values, ghosts none.
    void fill(int i) {
        for_grown([&](const coordinates& x) {
            const std::int64_t n = halocline_shell_site(shell_, x.data());
            for (int c = 0; n >= 0 && c < components_; ++c)
                array(i)[n * components_ + c] = is_own(x) ? value_of(x, i, c) : untouched;
        });
    }
    /// What the exchange of array i leaves at x: the value, that of the other end of the lattice, or nothing.
    [[nodiscard]] double expected(const coordinates& x, int i, int c) const {
        coordinates wrapped = x;
        double sign = 1;
        int beyond = 0;
        for (std::size_t mu = 0; mu < 4; ++mu) {
            beyond += x[mu] < first_[mu] || x[mu] >= first_[mu] + extent_[mu] ? 1 : 0;
            wrapped[mu] = (x[mu] + global[mu]) % global[mu];
            if (wrapped[mu] == x[mu]) continue;
            if (options_.boundary[mu] == HALOCLINE_OPEN) return untouched;
            if (options_.boundary[mu] == HALOCLINE_ANTIPERIODIC) sign = -sign;
        }
        if (beyond > 1 && options_.corners == 0) return untouched;
        const int parity = (wrapped[0] + wrapped[1] + wrapped[2] + wrapped[3]) % 2;
        if (beyond > 0 && options_.parity != 0 && parity != options_.parity - 1) return untouched;
        return sign * value_of(wrapped, i, c);
    }
    void expect_exchanged(int i) {
        std::int64_t ghosts = 0, wrong = 0;
        for_grown([&](const coordinates& x) {
            const std::int64_t n = halocline_shell_site(shell_, x.data());
            if (n < 0) return;
            ghosts += is_own(x) ? 0 : 1;
            for (int c = 0; c < components_; ++c) wrong += array(i)[n * components_ + c] == expected(x, i, c) ? 0 : 1;
        });
        EXPECT_EQ(wrong, 0);
        EXPECT_GT(ghosts, 0);
    }
    void exchange(int which) {
        halocline_shell_start(shell_, which);
        ASSERT_EQ(halocline_shell_finish(shell_), HALOCLINE_OK) << halocline_error();
    }

    halocline_job* job_ = nullptr;
    halocline_shell_options options_{};
    halocline_shell* shell_ = nullptr;
    coordinates first_{}, extent_{};
    std::int64_t sites_ = 0;
    int components_ = 1;
    std::vector<void*> arrays_;
    std::vector<std::vector<double>> owned_;
};

TEST_F(CShells, BringGhostsOfArraysThatTakeTurns) {
    for (const int layout : {HALOCLINE_PADDED, HALOCLINE_APPENDED})
        for (const int corners : {0, 1})
            for (const int parity : {0, 1, 2})
                for (const int edge : {HALOCLINE_PERIODIC, HALOCLINE_ANTIPERIODIC, HALOCLINE_OPEN})
                    for (const bool in_slab : {false, true}) {
                        SCOPED_TRACE(testing::Message() << layout << corners << parity << edge << in_slab);
                        options_.layout = layout;
                        options_.corners = corners;
                        options_.parity = parity;
                        options_.boundary[3] = edge;
                        options_.components = 2;
                        make(2, 2, in_slab);
                        for (const int which : {0, 1, 0}) {
                            fill(which);
                            exchange(which);
                            expect_exchanged(which);
                        }
                        unmake(in_slab);
                    }
}

TEST_F(CShells, AllocateNothingInAStep) {
    options_.corners = 1;
    make(2, 2, true);
    fill(0);
    fill(1);
    exchange(0); // the first one may
    meet();
    halocline_status ended = HALOCLINE_OK;
    const std::uint64_t made = halocline_test::allocations_in([&] {
        for (int n = 0; n < 10 && ended == HALOCLINE_OK; ++n) {
            halocline_shell_start(shell_, n % 2);
            (void)halocline_shell_test(shell_);
            ended = halocline_shell_finish(shell_);
        }
    });
    EXPECT_EQ(ended, HALOCLINE_OK) << halocline_error();
    EXPECT_EQ(made, 0U);
    unmake(true);
}

TEST_F(CShells, BringSeveralFieldsInOneMessage) {
    options_.fields = 3;
    make(2, 6, true);
    for (const int which : {1, 0}) {
        for (int f = 0; f < 3; ++f) fill(3 * which + f);
        halocline_shell_start(shell_, which);
        while (halocline_shell_test(shell_) == 0) {
        }
        ASSERT_EQ(halocline_shell_finish(shell_), HALOCLINE_OK) << halocline_error();
        for (int f = 0; f < 3; ++f) expect_exchanged(3 * which + f);
    }
    unmake(true);
}

TEST_F(CShells, NumberTheSitesOfAnArray) {
    make(1, 1, false);
    EXPECT_EQ(sites_, (5 + 1) * 4 * 3 * std::int64_t{extent_[3] + 3});
    coordinates x = first_;
    x[0] -= 1;
    x[3] -= 2;
    EXPECT_EQ(halocline_shell_site(shell_, x.data()), 0);
    x[0] -= 1;
    EXPECT_EQ(halocline_shell_site(shell_, x.data()), -1);
    unmake(false);

    options_.layout = HALOCLINE_APPENDED;
    make(1, 1, false);
    const std::int64_t own = std::int64_t{5} * 4 * 3 * extent_[3];
    EXPECT_EQ(sites_, own + std::int64_t{4} * 3 * extent_[3] + std::int64_t{5} * 4 * 3 * 3);
    EXPECT_EQ(halocline_shell_site(shell_, first_.data()), 0);
    x = first_;
    x[3] -= 2;
    EXPECT_EQ(halocline_shell_site(shell_, x.data()), own) << "the first ghost is behind t-low";
    x[0] -= 1;
    EXPECT_EQ(halocline_shell_site(shell_, x.data()), -1) << "no edges were asked for";
    unmake(false);
}

TEST_F(CShells, ReversedAddGhostsToTheirSites) {
    options_.reverse = 1;
    options_.layout = HALOCLINE_APPENDED;
    make(1, 1, false);
    for (std::int64_t n = 0; n < sites_; ++n) array(0)[n] = 1;
    halocline_shell_start_reverse(shell_, 0);
    ASSERT_EQ(halocline_shell_finish(shell_), HALOCLINE_OK) << halocline_error();
    // One more for each ghost that is a copy of a site: behind x-low, and in t two below and one above.
    std::int64_t wrong = 0;
    for_grown([&](const coordinates& x) {
        if (!is_own(x)) return;
        double copies = x[0] == 4 ? 1 : 0;
        if (x[3] >= first_[3] + extent_[3] - 2) ++copies;
        if (x[3] == first_[3]) ++copies;
        wrong += array(0)[halocline_shell_site(shell_, x.data())] == 1 + copies ? 0 : 1;
    });
    EXPECT_EQ(wrong, 0);
    unmake(false);
}

TEST_F(CShells, DescribeThemselves) {
    make(1, 1, true);
    std::vector<char> text(halocline_shell_describe(shell_, nullptr, 0) + 1);
    halocline_shell_describe(shell_, text.data(), text.size());
    EXPECT_EQ(std::string(text.data()).substr(0, 18), "halo 'psi', padded") << text.data();
    EXPECT_EQ(halocline_shell_describe(nullptr, text.data(), text.size()), 0U);
    unmake(true);
}

TEST_F(CShells, RefuseWhatCantBe) {
    const auto expect_refusal = [&](halocline_shell_options o, const std::string& why, int count = 1) {
        double one = 0;
        void* const arrays[]{&one, nullptr};
        halocline_shell* shell = nullptr;
        EXPECT_EQ(halocline_shell_create(job_, &o, count, arrays, &shell), HALOCLINE_INPUT_ERROR);
        EXPECT_NE(std::string(halocline_error()).find(why), std::string::npos) << halocline_error();
        EXPECT_EQ(shell, nullptr);
    };
    const auto with = [&](auto change) {
        halocline_shell_options o = options_;
        change(o);
        return o;
    };
    using options = halocline_shell_options;
    expect_refusal(with([](options& o) { o.type = HALOCLINE_BYTE; }), "type = 0: HALOCLINE_INT32, ");
    expect_refusal(with([](options& o) { o.layout = 2; }), "layout = 2 is neither 0 nor 1");
    expect_refusal(with([](options& o) { o.boundary[1] = 4; }), "boundary[1] = 4 is none of 0 to 3");
    expect_refusal(with([](options& o) { o.components = -1; }), "components is -1: 1 or more is expected");
    expect_refusal(with([](options& o) { o.fields = -2; }), "fields is -2: 1 or more is expected");
    expect_refusal(with([](options& o) { o.width_low[0] = -1; }), "ghost width");
    expect_refusal(with([](options& o) { o.width_low[0] = 6; }), "ghost width 6 behind x-low is wider than ");
    expect_refusal(with([](options& o) { o.width_low[0] = o.width_low[3] = o.width_high[3] = 0; }), "width_low and");
    expect_refusal(with([](options& o) { o.parity = 3; }), "parity is 3");
    expect_refusal(with([](options& o) { o.rank_grid[0] = 2; }), " ranks; the job has ");
    expect_refusal(with([](options& o) {
                       o.type = HALOCLINE_INT64;
                       o.boundary[3] = HALOCLINE_ANTIPERIODIC;
                   }),
                   "float");
    expect_refusal(options_, "count is 0: 1 or more is expected", 0);
    expect_refusal(options_, "arrays[1] is NULL", 2);

    halocline_shell* shell = nullptr;
    void* const* none = nullptr;
    EXPECT_EQ(halocline_shell_create(job_, &options_, 1, none, &shell), HALOCLINE_INPUT_ERROR);
    EXPECT_STREQ(halocline_error(), "'arrays' is NULL");
    EXPECT_EQ(halocline_shell_box(job_, &options_, first_.data(), extent_.data(), nullptr), HALOCLINE_INPUT_ERROR);
    const halocline_shell_options vast = with([](options& o) {
        for (int mu = 0; mu < 4; ++mu) o.width_low[mu] = 1 << 20;
    });
    EXPECT_EQ(halocline_shell_box(job_, &vast, first_.data(), extent_.data(), &sites_), HALOCLINE_INPUT_ERROR);
    EXPECT_NE(std::string(halocline_error()).find("more than 2147483647 sites"), std::string::npos)
        << halocline_error();
    EXPECT_EQ(halocline_shell_finish(nullptr), HALOCLINE_INPUT_ERROR);
    halocline_shell_free(nullptr);
}

// Misuse is final for a plan.
TEST_F(CShells, AreMisusedByTheWrongCalls) {
    for (const bool reverse : {false, true}) {
        make(1, 1, true);
        if (reverse)
            halocline_shell_start_reverse(shell_, 0);
        else
            halocline_shell_start(shell_, 1);
        EXPECT_EQ(halocline_shell_finish(shell_), HALOCLINE_MISUSED);
        const std::string why = halocline_error();
        EXPECT_NE(why.find(reverse ? "reverse" : "start(1): the plan was made with 1 binding, 0"), std::string::npos)
            << why;
        unmake(true);
    }
}

TEST_F(CShells, TellOfStaleGhosts) {
    {
        const halocline_test::environment_variable checks("HALOCLINE_CHECK", "normal");
        make(1, 1, true);
    }
    EXPECT_EQ(halocline_shell_require_fresh(shell_, 0), HALOCLINE_OTHER_ERROR);
    fill(0);
    exchange(0);
    EXPECT_EQ(halocline_shell_require_fresh(shell_, 0), HALOCLINE_OK) << halocline_error();
    array(0)[halocline_shell_site(shell_, first_.data())] = 7; // behind t-high of the rank below
    EXPECT_EQ(halocline_shell_require_fresh(shell_, 0), HALOCLINE_OTHER_ERROR);
    EXPECT_NE(std::string(halocline_error()).find("a field was written since"), std::string::npos) << halocline_error();
    EXPECT_EQ(halocline_shell_require_fresh(shell_, 1), HALOCLINE_INPUT_ERROR);
    unmake(true);
}

} // namespace
