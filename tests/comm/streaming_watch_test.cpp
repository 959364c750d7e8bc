// SPDX-License-Identifier: Apache-2.0
// When messages start and stop being streamed, with costs that jobs measured on one machine whose cores were sometimes
// near each other and sometimes far apart.
#include <halocline/comm/detail/streaming_watch.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace halocline::comm;

/// In nanoseconds: the flag; a message and a line through the cache, and bypassing it; a line that the peer has read.
costs recorded(double flag, double cached, double cached_line, double past, double past_line, double take) {
    constexpr double ns = 1e-9;
    return {.flag_seconds = flag * ns,
            .cached = {cached * ns, cached_line * ns},
            .streamed = {past * ns, past_line * ns},
            .take_seconds = take * ns,
            .keep_seconds = 20 * ns};
}

/// Costs from 13 and 9 jobs on an idle machine, those with the extremes of each column.
const std::vector<costs> far_apart{
    recorded(217.6, 340.3, 20.517, 433.6, 6.693, 150.1), recorded(184.9, 50.4, 17.176, 326.9, 7.673, 150.1),
    recorded(177.6, 55.9, 16.753, 405.3, 7.848, 150.1),  recorded(162.6, 189.3, 16.071, 524.6, 6.703, 150.1),
    recorded(232.7, 249.3, 15.529, 467.8, 7.035, 150.1), recorded(197.4, 178.4, 15.668, 349.5, 7.108, 150.1)};
const std::vector<costs> near{
    recorded(70.0, 18.8, 6.826, 326.3, 6.248, 50), recorded(65.0, 30.2, 6.865, 301.0, 7.483, 50),
    recorded(52.5, 21.0, 6.972, 293.6, 8.066, 50), recorded(72.5, 13.3, 7.178, 306.1, 8.105, 50),
    recorded(70.0, 11.0, 8.063, 275.0, 8.139, 50), recorded(67.5, 23.8, 6.792, 308.3, 7.462, 50)};
/// What watches read on that machine, whose clock ticks every 10 ns.
constexpr double near_ns[] = {40, 50, 60, 70}, far_ns[] = {150, 160, 170, 230, 310};

std::uint64_t ticks_of(double ns) { return static_cast<std::uint64_t>(ns * 1e-9 / seconds_per_tick()); }

} // namespace

TEST(StreamingBounds, AJobThatBeganInEitherPlaceFollowsToTheOther) {
    for (const std::vector<costs>* jobs : {&far_apart, &near})
        for (const costs& c : *jobs)
            for (const std::size_t bytes : {6144, 8192, 16384, 32768, 49152, 131072, 1 << 20}) {
                const streaming_bounds bounds(c, bytes);
                for (const bool now : {false, true}) {
                    for (const double ns : near_ns)
                        EXPECT_FALSE(bounds.streamed(now, ticks_of(ns))) << bytes << " bytes, " << bounds.describe();
                    for (const double ns : far_ns)
                        EXPECT_TRUE(bounds.streamed(now, ticks_of(ns))) << bytes << " bytes, " << bounds.describe();
                }
            }
}

TEST(StreamingBounds, SmallMessagesStayInTheCacheInBothPlaces) {
    for (const std::vector<costs>* jobs : {&far_apart, &near})
        for (const costs& c : *jobs) {
            const streaming_bounds bounds(c, 512);
            for (const double ns : {50.0, 170.0})
                EXPECT_FALSE(bounds.streamed(false, ticks_of(ns))) << bounds.describe();
        }
}

TEST(StreamingBounds, ShortRunsFollowByTheLinesThatTheyFill) {
    for (const std::vector<costs>* jobs : {&far_apart, &near})
        for (const costs& c : *jobs)
            for (const double runs : {64.0, 512.0, 4096.0}) {
                written_lines sites; // of 96 bytes, far from each other
                sites.whole = sites.part = runs;
                const streaming_bounds bounds(c, sites);
                for (const bool now : {false, true}) {
                    for (const double ns : near_ns)
                        EXPECT_FALSE(bounds.streamed(now, ticks_of(ns))) << runs << " runs, " << bounds.describe();
                    if (jobs == &far_apart && runs == 64) continue; // little is gained, so either is right
                    for (const double ns : far_ns)
                        EXPECT_TRUE(bounds.streamed(now, ticks_of(ns))) << runs << " runs, " << bounds.describe();
                    EXPECT_EQ(streaming_pays(path::automatic, c, sites), jobs == &far_apart) << runs;
                }
            }
}

TEST(StreamingBounds, LinesThatAreFilledInPartAreNotStreamed) {
    for (const std::vector<costs>* jobs : {&far_apart, &near})
        for (const costs& c : *jobs)
            for (const double runs : {64.0, 4096.0, 1e6}) {
                written_lines parts;
                parts.part = runs;

                EXPECT_FALSE(streaming_pays(path::automatic, c, parts)) << runs;
                EXPECT_FALSE(streaming_bounds(c, parts).reachable()) << runs;
            }
}

TEST(StreamingBounds, WhereCostsWereMeasuredTheFirstChoiceStays) {
    for (const std::vector<costs>* jobs : {&far_apart, &near})
        for (const costs& c : *jobs)
            for (const std::size_t bytes : {64, 1024, 6144, 16384, 32768, 1 << 20}) {
                const bool first = streaming_pays(path::automatic, c, bytes);
                const streaming_bounds bounds(c, bytes);
                EXPECT_EQ(first, jobs == &far_apart && bytes >= 6144) << bytes;
                EXPECT_EQ(bounds.streamed(first, ticks_of(1e9 * c.take_seconds)), first) << bytes << bounds.describe();
            }
}

TEST(StreamingBounds, WhereMovesSkipWaitsOnlyShortRunsFollow) {
    for (const std::vector<costs>* jobs : {&far_apart, &near})
        for (costs c : *jobs) {
            c.moves_skip_waits = true;
            c.run_line_seconds = 2 * c.cached.line_seconds;
            for (const std::size_t bytes : {6144, 65536, 1 << 20}) {
                EXPECT_FALSE(streaming_bounds(c, bytes).known());
                EXPECT_TRUE(streaming_bounds(c, {bytes, true}).reachable());
                EXPECT_FALSE(streaming_watch(c, bytes, false).due(ticks())) << "looks for nothing";
            }
        }
}

/// Half-way between near and far, whatever messages cost.
TEST(StreamingBounds, OfDistanceLieBetweenThePlaces) {
    for (const std::vector<costs>* jobs : {&far_apart, &near})
        for (costs c : *jobs) {
            const bool far = jobs == &far_apart;
            const streaming_bounds bounds = streaming_bounds::of_distance(c);
            const double here = 1e9 * c.take_seconds, there = far ? here / 3.5 : here * 3.5;
            for (const bool before : {false, true}) {
                EXPECT_EQ(bounds.streamed(before, ticks_of(here)), far) << bounds.describe_times();
                EXPECT_EQ(bounds.streamed(before, ticks_of(there)), !far) << bounds.describe_times();
            }
            EXPECT_EQ(streaming_watch::of_distance(c).streamed(), far);
        }
    EXPECT_FALSE(streaming_watch::of_distance(costs{}).watches());
    EXPECT_FALSE(streaming_watch::of_distance(costs{}).streamed());
}

TEST(StreamingWatch, LooksOnlyWhereAnythingMayChange) {
    costs flags_only = near.front(); // however far away lines may be, only the flag counts
    flags_only.cached.message_seconds = flags_only.flag_seconds;

    EXPECT_TRUE(streaming_watch(near.front(), 16384, false).due(ticks()));
    EXPECT_FALSE(streaming_watch(flags_only, 64, false).due(ticks()));
    EXPECT_FALSE(streaming_watch(costs{}, 16384, false).due(ticks()));
    EXPECT_FALSE(streaming_watch().due(ticks()));
    EXPECT_TRUE(streaming_watch(flags_only, 64, true).due(ticks())) << "it is, although it would not be begun";
}
