// SPDX-License-Identifier: Apache-2.0
// Whether ghosts match the field as it is now.
#include "oracle.hpp"
#include "small_job.hpp"

#include <halocline/halo/packer.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <span>
#include <string>
#include <thread>

using namespace halocline_test;
using comm::status;
using halo::plan;
using lattice::decomposition;

namespace {

TEST(Plan, ExchangesOnlyFieldsThatWereWritten) {
    const auto cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 2});

    run(2, [&](const comm::job& j) {
        plan p(j, cut, {.bytes_per_site = 8});
        const auto order = lattice::site_order::lexicographic(cut.local_box(j.rank()).extents);
        lattice::field<double> x(order, 1), y(order, 1);
        const auto exchanges = [&](lattice::field<double>& f) {
            EXPECT_EQ(p.ensure_halo(f), status::ok);
            return p.epoch();
        };

        EXPECT_EQ(exchanges(x), 1U);
        EXPECT_EQ(exchanges(x), 1U);
        x.mark_written();
        EXPECT_FALSE(p.is_fresh(x));
        EXPECT_EQ(exchanges(x), 2U);
        EXPECT_EQ(exchanges(y), 3U); // the ghosts belong to one field
        EXPECT_EQ(exchanges(x), 4U);
        y.copy_from(x);
        EXPECT_EQ(exchanges(y), 5U);
    });
}

TEST(Plan, CatchesStaleGhosts) {
    const auto cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 2});

    run(2, [&](const comm::job& j) {
        plan p(j, cut, {.name = "stale", .bytes_per_site = 8, .checks = check_level::normal});
        plan trusting(j, cut, {.bytes_per_site = 8, .checks = check_level::light});
        const auto order = lattice::site_order::lexicographic(cut.local_box(j.rank()).extents);
        lattice::field<double> x(order, 1), y(order, 1);
        fill_with_oracle(x, cut, j.rank(), 1);
        const auto why = [&](const lattice::field<double>& f) {
            try {
                p.require_fresh(f);
            } catch (const error& e) {
                return std::string(e.what());
            }
            return std::string("fresh");
        };
        EXPECT_NE(why(x).find("is not what the last finished exchange sent"), std::string::npos);
        p.start(x);
        EXPECT_EQ(why(x),
                  "halo 'stale': stale ghosts after exchange 0: the next exchange is not finished; call finish() "
                  "first");
        ASSERT_EQ(p.finish(), status::ok);

        EXPECT_EQ(why(x), "fresh");
        EXPECT_NE(why(y).find("is not what"), std::string::npos);
        x.at(0, 0) = 7; // without marking it
        EXPECT_EQ(
            why(x),
            "halo 'stale': stale ghosts after exchange 1: the field was written since, without mark_written(); call "
            "start() and finish()");
        EXPECT_NO_THROW(trusting.require_fresh(x));
        x.mark_written();
        EXPECT_NE(why(x).find("was marked as written since; call start() and finish(), or ensure_halo()"),
                  std::string::npos);
        ASSERT_EQ(p.ensure_halo(x), status::ok);
        EXPECT_EQ(why(x), "fresh");
        x.at(0, 0) = 8; // ensure_halo() would have to trust the mark
        EXPECT_EQ(p.ensure_halo(x), status::misused);
        EXPECT_EQ(refusal([&] { p.finish_or_throw(); }),
                  "halo 'stale': ensure_halo() of a field that was written since its exchange, without mark_written()");
    });
}

TEST(Plan, AnEnsureHaloThatIsMisusedEndsTheWaitsOfNeighbours) {
    const auto cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 2});
    std::atomic<bool> ended{false};

    run(2, [&](const comm::job& j) {
        plan p(j, cut, {.bytes_per_site = 8, .checks = check_level::normal});
        lattice::field<double> x(lattice::site_order::lexicographic(cut.local_box(j.rank()).extents), 1);
        ASSERT_EQ(p.ensure_halo(x), status::ok);
        x.at(0, 0) = 7;
        if (j.rank() == 0) {
            EXPECT_EQ(p.ensure_halo(x), status::misused) << "not marked";
            while (!ended) std::this_thread::yield(); // and does nothing else with the plan
        } else {
            x.mark_written();
            EXPECT_EQ(p.ensure_halo(x), status::aborted) << "before the deadline";
            ended = true;
        }
    });
}

TEST(Plan, KnowsEachOfSeveralFields) {
    const auto cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 2});

    run(2, [&](const comm::job& j) {
        plan p(j, cut, {.name = "pair", .bytes_per_site = 8, .fields = 2, .checks = check_level::normal});
        using field = lattice::field<double>;
        const auto order = lattice::site_order::lexicographic(cut.local_box(j.rank()).extents);
        field x(order, 1), y(order, 1), z(order, 1);
        using fields = std::array<const field*, 2>;
        const fields xy{&x, &y}, yx{&y, &x};
        const auto span_of = [](const fields& f) { return std::span<const field* const>(f); };
        const auto why = [&](auto&& what) { return refusal<error>([&] { p.require_fresh(what); }); };
        EXPECT_FALSE(p.is_fresh(span_of(xy)));
        p.start(span_of(xy));
        EXPECT_FALSE(p.is_fresh(x)) << "not finished";
        ASSERT_EQ(p.finish(), status::ok);

        EXPECT_TRUE(p.is_fresh(x) && p.is_fresh(y) && p.is_fresh(span_of(xy)));
        EXPECT_FALSE(p.is_fresh(z));
        EXPECT_FALSE(p.is_fresh(span_of(yx))) << "the ghosts of x are those of field 0";
        EXPECT_EQ(why(x), "accepted");
        EXPECT_EQ(why(y), "accepted");
        EXPECT_EQ(why(span_of(xy)), "accepted");
        EXPECT_NE(why(z).find("is not what the last finished exchange sent"), std::string::npos);
        EXPECT_NE(why(span_of(yx)).find("is not what the last finished exchange sent"), std::string::npos);
        const field* const one = &x;
        EXPECT_EQ(why(std::span<const field* const>(&one, 1)),
                  "halo 'pair': require_fresh() was given 1 field; it sends 2");
        y.at(0, 0) = 7; // without marking it
        EXPECT_NE(why(y).find("was written since"), std::string::npos);
        EXPECT_NE(why(span_of(xy)).find("was written since"), std::string::npos);
        EXPECT_EQ(why(x), "accepted");
        y.mark_written();
        EXPECT_FALSE(p.is_fresh(y));
        EXPECT_TRUE(p.is_fresh(x));
        EXPECT_FALSE(p.is_fresh(span_of(xy)));
        EXPECT_NE(why(y).find("was marked as written since"), std::string::npos);

        EXPECT_EQ(p.ensure_halo(span_of(xy)), status::ok);
        EXPECT_EQ(p.ensure_halo(span_of(xy)), status::ok);
        EXPECT_EQ(p.epoch(), 2U);
        plan unmarked(j, cut, halo::options_for(x, {.fields = 2, .checks = check_level::normal}));
        EXPECT_EQ(unmarked.ensure_halo(span_of(xy)), status::ok);
        y.at(0, 0) = 8; // without marking it, the second of them
        EXPECT_EQ(unmarked.ensure_halo(span_of(xy)), status::misused);
        EXPECT_EQ(p.ensure_halo(x), status::misused) << "though x is fresh: every call alike";
        EXPECT_NE(refusal([&] { p.finish_or_throw(); }).find("start() was given 1 field; it sends 2 of 8 bytes"),
                  std::string::npos);
    });
}

TEST(Plan, TracksNoFieldThatItsCallersFunctionPacked) {
    const auto cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 2});

    run(2, [&](const comm::job& j) {
        plan p(j, cut, {.bytes_per_site = 8, .checks = check_level::normal});
        const lattice::field<double> x(lattice::site_order::lexicographic(cut.local_box(j.rank()).extents), 1);
        ASSERT_EQ(p.ensure_halo(x), status::ok);
        ASSERT_TRUE(p.is_fresh(x));

        p.start([](int, std::int64_t first, std::int64_t last, std::byte* to) {
            std::fill(to + 8 * first, to + 8 * last, std::byte{1});
        });
        EXPECT_FALSE(p.is_fresh(x)) << "other ghosts may have come already";
        EXPECT_NE(refusal<error>([&] { p.require_fresh(x); }).find("is not finished"), std::string::npos);
        ASSERT_EQ(p.finish(), status::ok);

        EXPECT_FALSE(p.is_fresh(x));
        EXPECT_EQ(
            refusal<error>([&] { p.require_fresh(x); }),
            "halo 'halo': stale ghosts after exchange 2: the field is not tracked: the last exchange was packed by "
            "its caller; call start() and finish(), or ensure_halo()");
        ASSERT_EQ(p.ensure_halo(x), status::ok);
        EXPECT_EQ(p.epoch(), 3U);
        EXPECT_NO_THROW(p.require_fresh(x));
    });
}

/// Fields of two components on two ranks, and plans whose messages a packer makes.
struct packed_fields {
    using field = lattice::field<double>;
    halo::packer_options whole{.components = 2}, twisted{.components = 2, .phases = {1, 1, 1, -1}};
    const decomposition cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 2});
    std::shared_ptr<const lattice::site_order> order;

    explicit packed_fields(const comm::job& j)
        : order(lattice::site_order::lexicographic(cut.local_box(j.rank()).extents)) {}
    [[nodiscard]] plan made(const comm::job& j, int fields, check_level checks) const {
        return {j, cut, {.name = "packed", .bytes_per_site = 16, .fields = fields, .checks = checks}};
    }
};

TEST(Plan, TracksWhatAPackerPacks) {
    run(2, [&](const comm::job& j) {
        const packed_fields c(j);
        plan p = c.made(j, 1, check_level::normal);
        const halo::packer<double> pack(p, c.whole), other(p, c.twisted), copy = pack;
        packed_fields::field x(c.order, 2), y(c.order, 2);
        fill_with_oracle(x, c.cut, j.rank(), 1);
        const auto why = [&](const packed_fields::field& f) { return refusal<error>([&] { p.require_fresh(f); }); };
        EXPECT_FALSE(p.is_fresh(pack.of(x)));
        p.start(pack.of(x));
        EXPECT_FALSE(p.is_fresh(pack.of(x))) << "not finished";
        EXPECT_NE(why(x).find("is not finished"), std::string::npos);
        ASSERT_EQ(p.finish(), status::ok);

        EXPECT_EQ(wrong_ghosts<double>(p, c.cut, 2, 1), 0);
        EXPECT_TRUE(p.is_fresh(x) && p.is_fresh(pack.of(x)) && p.is_fresh(copy.of(x)));
        EXPECT_FALSE(p.is_fresh(y) || p.is_fresh(pack.of(y)));
        EXPECT_FALSE(p.is_fresh(other.of(x))) << "ghosts with other phases";
        EXPECT_EQ(why(x), "accepted");
        EXPECT_NE(why(y).find("is not what the last finished exchange sent"), std::string::npos);
        const auto exchanges = [&](auto&& what) {
            EXPECT_EQ(p.ensure_halo(what), status::ok);
            return p.epoch();
        };
        EXPECT_EQ(exchanges(pack.of(x)), 1U);
        EXPECT_EQ(exchanges(other.of(x)), 2U);
        EXPECT_EQ(exchanges(pack.of(x)), 3U);
        EXPECT_EQ(exchanges(x), 4U) << "copied, not packed";
        EXPECT_EQ(exchanges(x), 4U);
        EXPECT_FALSE(p.is_fresh(pack.of(x)));
        EXPECT_EQ(exchanges(pack.of(x)), 5U);
        x.mark_written();
        EXPECT_FALSE(p.is_fresh(pack.of(x)));
        EXPECT_NE(why(x).find("was marked as written since"), std::string::npos);
        EXPECT_EQ(exchanges(pack.of(x)), 6U);
        x.at(0, 1) = 7; // without marking it
        EXPECT_NE(why(x).find("was written since, without mark_written()"), std::string::npos);
        EXPECT_EQ(p.ensure_halo(pack.of(x)), status::misused);
        EXPECT_EQ(refusal([&] { p.finish_or_throw(); }),
                  "halo 'packed': ensure_halo() of a field that was written since its exchange, without "
                  "mark_written()");
    });
}

TEST(Plan, TracksEachOfSeveralFieldsThatAPackerPacks) {
    run(2, [&](const comm::job& j) {
        const packed_fields c(j);
        plan p = c.made(j, 2, check_level::normal);
        const halo::packer<double> pack(p, c.whole);
        packed_fields::field x(c.order, 2), y(c.order, 2);
        const std::array xy{&x, &y}, yx{&y, &x};
        const auto exchanges = [&](const auto& fields) {
            EXPECT_EQ(p.ensure_halo(pack.of(std::span<const packed_fields::field* const>(fields))), status::ok);
            return p.epoch();
        };

        const std::array<const packed_fields::field*, 2> in_order{&x, &y}, swapped{&y, &x};
        EXPECT_EQ(exchanges(in_order), 1U);
        EXPECT_EQ(exchanges(in_order), 1U);
        EXPECT_EQ(exchanges(swapped), 2U);
        EXPECT_TRUE(p.is_fresh(x) && p.is_fresh(y) && p.is_fresh(yx));
        EXPECT_FALSE(p.is_fresh(xy));
        EXPECT_NO_THROW(p.require_fresh(yx));
        EXPECT_THROW(p.require_fresh(xy), error);
        y.mark_written();
        EXPECT_TRUE(p.is_fresh(x));
        EXPECT_THROW(p.require_fresh(yx), error);
        EXPECT_EQ(exchanges(swapped), 3U);
    });
}

TEST(Plan, AFieldWithoutStorageIsNeverFresh) {
    const auto cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 2});

    run(2, [&](const comm::job& j) {
        plan p(j, cut, {.bytes_per_site = 8, .checks = check_level::normal});
        const lattice::field<double> none;

        EXPECT_FALSE(p.is_fresh(none));
        EXPECT_NE(refusal<error>([&] { p.require_fresh(none); }).find("is not what the last finished exchange sent"),
                  std::string::npos);
        EXPECT_EQ(p.ensure_halo(none), status::misused);
        EXPECT_NE(refusal([&] { p.finish_or_throw(); }).find("one without storage"), std::string::npos);
    });
}

TEST(Plan, HasNoGhostsBeforeAnyHaveArrived) {
    const auto cut = decomposition::even({2, 2, 2, 2}, {1, 1, 1, 1});
    plan p(comm::job::single(small_job()), cut, {.bytes_per_site = 8, .self_exchange = true, .fields = 2});

    for (const halo::plan_message& m : p.messages()) {
        EXPECT_EQ(p.ghost(m.where), nullptr);
        EXPECT_EQ(p.ghost(m.where, 1), nullptr);
        EXPECT_TRUE(p.ghosts<double>(m.where, 1).empty());
    }
    p.start([](int, std::int64_t, std::int64_t, std::byte*) {});
    ASSERT_EQ(p.finish(), status::ok);
    for (const halo::plan_message& m : p.messages()) EXPECT_EQ(p.ghosts<double>(m.where, 1).size(), 8U);
}

} // namespace
