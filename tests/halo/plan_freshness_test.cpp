// SPDX-License-Identifier: Apache-2.0
// Whether ghosts are those of the field as it is.
#include "oracle.hpp"
#include "small_job.hpp"

#include <string>

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
        EXPECT_EQ(exchanges(y), 3U); // the ghosts are of one field
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
        EXPECT_NE(why(x).find("is not what"), std::string::npos) << "not finished";
        ASSERT_EQ(p.finish(), status::ok);

        EXPECT_EQ(why(x), "fresh");
        EXPECT_NE(why(y).find("is not what"), std::string::npos);
        x.at(0, 0) = 7; // nobody says so
        EXPECT_EQ(
            why(x),
            "halo 'stale': stale ghosts after exchange 1: the field was written since; call start() and finish(), "
            "or ensure_halo()");
        EXPECT_NO_THROW(trusting.require_fresh(x));
        x.mark_written();
        EXPECT_NE(why(x).find("was marked as written since"), std::string::npos);
    });
}

} // namespace
