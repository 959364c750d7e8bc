// SPDX-License-Identifier: Apache-2.0
// How long a wait keeps its core, with made-up times.
#include "job/job_core.hpp"

#include <halocline/comm/clock.hpp>
#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/job.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <sys/resource.h>
#include <thread>

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
    EXPECT_EQ(told.unwatched_polls(), 1000);
    EXPECT_FALSE(told.keeps(0, 1));
}

/// Whoever never wants to yield says so by a large number.
TEST(Spinning, ManyPollsDelayNeitherDeadlinesNorTheEndOfTheJob) {
    using namespace halocline::comm;
    job_options options{.spin_polls = 1'000'000'000};
    options.deadline = std::chrono::milliseconds(2000);
    const auto begin = std::chrono::steady_clock::now();
    for (const bool gives_up : {false, true}) {
        std::atomic<bool> over{false};
        run_threads(
            2,
            [&](const job& j) {
                global_sum sum(j, 1);
                double v = 1;
                if (j.rank() == 0) {
                    EXPECT_EQ(sum({&v, 1}), gives_up ? status::aborted : status::timed_out);
                    over = true;
                    over.notify_one();
                } else {
                    std::this_thread::sleep_for(std::chrono::milliseconds(50)); // so that rank 0 is in its wait
                    if (gives_up) j.abort("enough");
                    over.wait(false);
                }
            },
            options);
    }
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15)) << "the polls take at least 25 s";
}

TEST(Spinning, GoesOnWhileAnotherJobTakesWhatItIsOffered) {
    spinning own(job_options{}, true);
    double now = 0; // µs
    const auto offer = [&](double taken) {
        own.note_yield(microseconds(now), microseconds(now + taken));
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
    offer(1); // by chance the other's slice has just ended
    EXPECT_FALSE(own.keeps(0, microseconds(now)));
    offer(4000);
    EXPECT_TRUE(kept_for(64e3));
    now += 200e3;
    for (int i = 0; i < 10; ++i) offer(1); // the other has gone
    offer(4000);
    EXPECT_TRUE(kept_for(4e3));
}

TEST(Spinning, SleepsForAPartOfTheWaitWhereProcessorTimeIsShort) {
    const spinning plenty(job_options{}, true);
    EXPECT_FALSE(plenty.rationed());
    for (const bool own : {true, false})
        EXPECT_TRUE(spinning(job_options{}, own, halocline::comm::exceeded_quota{1.5, 4, 4}).rationed());
    EXPECT_EQ(spinning::nap_nanoseconds(55e-6), 50'000);
    EXPECT_NEAR(static_cast<double>(spinning::nap_nanoseconds(1e-3)), 250'000, 1000);
    EXPECT_EQ(spinning::nap_nanoseconds(1), 1'000'000) << "a death is to be seen";
}

/// How often the calling thread has slept.
long times_asleep() {
    rusage use{};
    getrusage(RUSAGE_THREAD, &use);
    return use.ru_nvcsw; // yields don't count
}

/// How often rank 0 sleeps in a sum for which rank 1 is late: 100 ms, or 1 s if it is expected to sleep, because a busy
/// machine may give it few turns. Meaningless on other ranks.
long sleeps_in_a_long_wait(const halocline::comm::job& j, bool expected) {
    using namespace halocline::comm;
    global_sum sum(j, 1);
    double one = 1;
    EXPECT_EQ(sum({&one, 1}), status::ok);
    if (j.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(expected ? 1000 : 100));
    const long before = times_asleep();

    EXPECT_EQ(sum({&one, 1}), status::ok);

    EXPECT_EQ(one, 4);
    return times_asleep() - before;
}

TEST(Spinning, ALongWaitSleepsOnlyWhereProcessorTimeIsShort) {
    using namespace halocline::comm;
    for (const bool own : {true, false})
        for (const bool rationed : {true, false})
            run_threads(2, [&](const job& j) {
                const std::optional<exceeded_quota> quota{{0.5, 2, 2}};
                j.core().spin = spinning(j.options(), own, rationed ? quota : std::nullopt);

                const long sleeps = sleeps_in_a_long_wait(j, rationed);

                EXPECT_TRUE(j.rank() == 1 || (sleeps >= 5) == rationed) << own << " " << sleeps;
            });
}

TEST(Spinning, ALongWaitSleepsWhereTheJobSaysThatItMay) {
    using namespace halocline::comm;
    for (const bool own : {true, false})
        for (const bool may_sleep : {true, false}) {
            job_options options;
            options.may_sleep = may_sleep;
            const auto body = [&](const job& j) {
                j.core().spin = spinning(j.options(), own); // not rationed

                const long sleeps = sleeps_in_a_long_wait(j, may_sleep);

                EXPECT_TRUE(j.rank() == 1 || (sleeps >= 5) == may_sleep) << own << " " << sleeps;
            };
            run_threads(2, body, options);
        }
}

TEST(Spinning, SaysHowItWaits) {
    const halocline::comm::exceeded_quota quota{1.5, 4, 4};

    EXPECT_EQ(spinning(job_options{}, true).describe(), "polls for 50 us, then offers its processor between polls");
    EXPECT_EQ(spinning(job_options{}, false).describe(),
              "polls 4 times because ranks share processors, then offers its processor between polls");
    EXPECT_EQ(spinning(job_options{.spin_polls = 3000}, true, quota).describe(),
              "polls 3000 times as spin_polls says, then offers its processor between polls; sleeps after 50 us of its "
              "own, because the 4 ranks of a quota of 1.5 processors can keep 4 busy");
}

} // namespace
