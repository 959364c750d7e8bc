// SPDX-License-Identifier: Apache-2.0
// Which slices of a bench's contenders are compared with each other (bench/support/rounds.hpp).
#include "support/core_probe.hpp"
#include "support/rounds.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace halocline::bench;

constexpr machine_pace near{.flag_ns = 50, .transfer_ns = 3, .core_ns = 1000};
constexpr machine_pace far{.flag_ns = 120, .transfer_ns = 10, .core_ns = 1000};

machine_pace with_cores(machine_pace pace, double core_ns) {
    pace.core_ns = core_ns;
    return pace;
}
/// A slice on a machine that does not change, of one measure.
turn slice(double us, const machine_pace& pace) { return {{{us}}, pace, pace}; }
std::vector<turn> slices(int count, double us, const machine_pace& pace) {
    return std::vector<turn>(static_cast<std::size_t>(count), slice(us, pace));
}
std::vector<turn> operator+(std::vector<turn> some, const std::vector<turn>& others) {
    some.insert(some.end(), others.begin(), others.end());
    return some;
}
std::vector<outcome> outcomes_of(const std::vector<std::vector<turn>>& turns) {
    return halocline::bench::outcomes_of(turns, false, false);
}
using batch_times = std::vector<double>;

TEST(Rounds, SlicesAreSortedByMode) {
    const auto seen = outcomes_of({slices(3, 1, near) + slices(4, 2, far)});

    EXPECT_FALSE(seen[0].noisy);
    EXPECT_EQ(seen[0].kept[outcome::fast].us[0], batch_times(3, 1));
    EXPECT_EQ(seen[0].kept[outcome::slow].us[0], batch_times(4, 2));
    EXPECT_EQ(most_seen(seen), outcome::slow);
}

TEST(Rounds, SlicesThatShowNoModeHaveNoSayInIt) {
    const std::vector<turn> changing(20, turn{{{9}}, near, far});
    const auto seen = outcomes_of({slices(3, 1, near), changing});

    EXPECT_TRUE(seen[1].mixed);
    EXPECT_EQ(seen[1].kept[outcome::slow].slices, 20);
    EXPECT_FALSE(seen[0].mixed);
    EXPECT_EQ(most_seen(seen), outcome::fast);
}

TEST(Rounds, SlicesInWhichTheModeChangesAreDropped) {
    const machine_pace slower_flags{.flag_ns = 145, .transfer_ns = 10, .core_ns = 1000};
    const machine_pace disturbed{.flag_ns = 501, .transfer_ns = 10, .core_ns = 1000};

    const auto seen = outcomes_of({slices(3, 1, far) + slices(3, 9, disturbed) +
                                   std::vector<turn>{{{{9}}, near, far}, {{{9}}, far, slower_flags}}});

    EXPECT_FALSE(seen[0].noisy);
    EXPECT_EQ(seen[0].kept[outcome::slow].us[0], batch_times(3, 1));
    EXPECT_EQ(seen[0].kept[outcome::fast].slices, 0);
    EXPECT_EQ(seen[0].dropped.us[0], batch_times(5, 9));
}

TEST(Rounds, SlicesOfBusyCoresAreNotComparedWithThoseOfQuickOnes) {
    const machine_pace busy = with_cores(far, 1800);
    const std::vector<turn> ours = slices(3, 1, far) + slices(5, 2, busy);
    const std::vector<turn> theirs = slices(5, 1.5, far) + slices(3, 3, busy);

    const auto seen = outcomes_of({ours, theirs});

    EXPECT_EQ(seen[0].kept[outcome::slow].us[0], batch_times(3, 1));
    EXPECT_EQ(seen[1].kept[outcome::slow].us[0], batch_times(5, 1.5));
    EXPECT_EQ(seen[0].kept[outcome::slow].core_ns, batch_times(6, 1000));
    EXPECT_EQ(seen[0].dropped.us[0], batch_times(5, 2));
    EXPECT_FALSE(seen[0].noisy || seen[1].noisy);
}

TEST(Rounds, SlicesDuringWhichCoresBecomeBusyDoNotCount) {
    const machine_pace busy = with_cores(far, 1300);

    const auto seen = outcomes_of({slices(3, 1, far) + std::vector<turn>{{{{9}}, far, busy}, {{{9}}, busy, far}}});

    EXPECT_EQ(seen[0].kept[outcome::slow].us[0], batch_times(3, 1));
}

TEST(Rounds, CoresThatDifferByAQuarterAreAlike) {
    const auto seen = outcomes_of({slices(2, 1, far) + slices(2, 2, with_cores(far, 1250))});

    EXPECT_EQ(seen[0].kept[outcome::slow].slices, 4);
    EXPECT_FALSE(seen[0].noisy);
}

// Also where one of them once saw them quick.
TEST(Rounds, WhereCoresAreBusyForAllThoseSlicesAreCompared) {
    const machine_pace busy = with_cores(far, 1800), busier = with_cores(far, 2200);
    const std::vector<turn> ours = slices(4, 1, far) + slices(3, 2, busy) + slices(2, 2.1, busier);
    const std::vector<turn> theirs = slices(2, 1.5, far) + slices(4, 3, busy);

    const auto seen = outcomes_of({ours, theirs});

    EXPECT_EQ(seen[0].kept[outcome::slow].us[0], (batch_times{2, 2, 2, 2.1, 2.1}));
    EXPECT_EQ(seen[1].kept[outcome::slow].us[0], batch_times(4, 3));
    EXPECT_FALSE(seen[0].noisy || seen[1].noisy);
}

TEST(Rounds, AContenderThatSawOtherCoresIsNoisy) {
    const machine_pace busy = with_cores(near, 1800);

    const auto seen = outcomes_of({slices(3, 1, near), slices(3, 2, near), slices(3, 9, busy) + slices(2, 9, far)});

    EXPECT_FALSE(seen[0].noisy || seen[1].noisy);
    EXPECT_TRUE(seen[2].noisy);
    EXPECT_EQ(seen[2].kept[outcome::fast].core_ns, batch_times(6, 1800)); // the mode is known
    EXPECT_EQ(seen[2].kept[outcome::slow].slices, 0);
    EXPECT_FALSE(seen[2].has_figure(outcome::slow));
}

TEST(Rounds, OfTooFewSteadySlicesAllCountAsSlowAndNoisy) {
    const auto seen = outcomes_of({slices(2, 1, near) + std::vector<turn>{{{{2}}, near, far}}});

    EXPECT_TRUE(seen[0].noisy);
    EXPECT_EQ(seen[0].kept[outcome::slow].us[0], (batch_times{1, 1, 2}));
    EXPECT_EQ(seen[0].kept[outcome::fast].slices, 0);
    EXPECT_TRUE(seen[0].has_figure(outcome::slow));
    EXPECT_EQ(seen[0].dropped.slices, 0);
}

TEST(Rounds, AFewSlicesOnQuickerCoresDoNotCountForAll) {
    const machine_pace quick{.flag_ns = 100, .transfer_ns = 20, .core_ns = 850};
    const machine_pace usual{.flag_ns = 100, .transfer_ns = 20, .core_ns = 1070};
    std::vector<turn> turns = slices(3, 1, quick);
    for (const turn& t : slices(40, 2, usual)) turns.push_back(t);

    const auto seen = halocline::bench::outcomes_of(std::vector{turns, turns}, false, false);

    for (const outcome& o : seen) {
        EXPECT_FALSE(o.noisy);
        EXPECT_EQ(o.kept[outcome::slow].slices, 40);
        EXPECT_EQ(o.dropped.slices, 3);
    }
}

TEST(Rounds, ShortSlicesAreNoisy) {
    const std::vector<std::vector<turn>> turns{slices(5, 1, near)};

    const auto seen = halocline::bench::outcomes_of(turns, false, true);

    EXPECT_TRUE(seen[0].noisy);
    EXPECT_EQ(seen[0].kept[outcome::slow].slices, 5);
}

TEST(Rounds, IfRanksOutnumberCoresOnlyFlagsMustBeSteady) {
    const machine_pace waiting{.flag_ns = 4000, .transfer_ns = 3, .core_ns = 1000};
    const machine_pace longer{.flag_ns = 4000, .transfer_ns = 300, .core_ns = 9000};
    const std::vector<std::vector<turn>> turns{
        {slice(1, waiting), slice(2, longer), {{{3}}, waiting, longer}, {{{9}}, waiting, near}}};

    const auto seen = halocline::bench::outcomes_of(turns, true, false);

    EXPECT_EQ(seen[0].kept[outcome::slow].us[0], (batch_times{1, 2, 3}));
    EXPECT_FALSE(seen[0].noisy);
}

} // namespace
