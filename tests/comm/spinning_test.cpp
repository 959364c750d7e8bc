// SPDX-License-Identifier: Apache-2.0
// How long a wait keeps its core, by made-up times.
#include "job/spinning.hpp"

#include <halocline/comm/clock.hpp>
#include <halocline/comm/job.hpp>

#include <gtest/gtest.h>

namespace {

using halocline::comm::job_options;
using halocline::comm::spinning;

std::uint64_t microseconds(double us) {
    return static_cast<std::uint64_t>(us * 1e-6 / halocline::comm::seconds_per_tick());
}

TEST(Spinning, WithACoreOfItsOwnIsLimitedByTheClock) {
    const spinning own(job_options{}, true);

    EXPECT_TRUE(own.keeps(0, microseconds(45)));
    EXPECT_FALSE(own.keeps(0, microseconds(55)));
    EXPECT_LT(own.polls(), 100) << "polls of a network take microseconds";
}

TEST(Spinning, EndsAtOnceWhereRanksOutnumberCores) {
    const spinning shared(job_options{}, false);

    EXPECT_FALSE(shared.has_own_core());
    EXPECT_EQ(shared.polls(), 4);
    EXPECT_FALSE(shared.keeps(0, 1));
}

TEST(Spinning, IsCountedInPollsIfTheseAreGiven) {
    const spinning told(job_options{.spin_polls = 3000}, true);

    EXPECT_EQ(told.polls(), 3000);
    EXPECT_FALSE(told.keeps(0, 1));
}

TEST(Spinning, GoesOnWhileAnotherJobTakesWhatItIsOffered) {
    spinning own(job_options{}, true);
    double now = 0; // µs
    const auto offer = [&](double taken) {
        own.gave_way(microseconds(now), microseconds(now + taken));
        now += taken;
    };
    const auto kept_for = [&](double us) {
        return own.keeps(microseconds(now - 1000), microseconds(now + 0.9 * us)) &&
               !own.keeps(microseconds(now - 1000), microseconds(now + 1.1 * us));
    };

    for (const double us : {4e3, 8e3, 16e3, 32e3, 64e3, 128e3, 128e3}) {
        offer(4000);
        EXPECT_TRUE(kept_for(us)) << us;
        now += 2 * us;
    }
    offer(1); // by chance the other's slice ended
    EXPECT_FALSE(own.keeps(0, microseconds(now)));
    offer(4000);
    EXPECT_TRUE(kept_for(64e3));
    now += 200e3;
    for (int i = 0; i < 10; ++i) offer(1); // it has gone
    offer(4000);
    EXPECT_TRUE(kept_for(4e3));
}

} // namespace
