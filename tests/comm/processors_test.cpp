// SPDX-License-Identifier: Apache-2.0
// Which processors ranks are given, on made-up machines described by files.
#include <halocline/comm/processors.hpp>

#include <halocline_test/run_command.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <random>
#include <thread>

namespace {

using namespace halocline::comm;
using numbers = std::vector<int>;
namespace fs = std::filesystem;

/// The description of a machine in /sys/devices/system/cpu.
class made_up_machine {
  public:
    void add(int processor, const std::string& core, int package, const std::string& cache, int node) const {
        const fs::path place = folder_ / ("cpu" + std::to_string(processor));
        fs::create_directories(place / "topology");
        fs::create_directories(place / "cache" / "index3");
        fs::create_directories(place / ("node" + std::to_string(node)));
        std::ofstream(place / "topology" / "core_cpus_list") << core << "\n";
        std::ofstream(place / "topology" / "physical_package_id") << package << "\n";
        std::ofstream(place / "cache" / "index3" / "shared_cpu_list") << cache << "\n";
    }
    [[nodiscard]] numbers order(numbers processors) const { return order_of_use(std::move(processors), folder_ / ""); }

  private:
    halocline_test::scratch_folder folder_;
};

numbers first(int n) {
    numbers all(static_cast<std::size_t>(n));
    std::iota(all.begin(), all.end(), 0);
    return all;
}

TEST(Processors, OneOfEachCoreComesBeforeSecondHardwareThreads) {
    const made_up_machine twins_are_neighbours, twins_come_last;
    for (int p = 0; p < 8; ++p) {
        const int even = p - p % 2, low = p % 4;
        const std::string cache = p < 4 ? "0-3" : "4-7";
        twins_are_neighbours.add(p, std::to_string(even) + "-" + std::to_string(even + 1), p / 4, cache, p / 4);
        twins_come_last.add(p, std::to_string(low) + "," + std::to_string(low + 4), low / 2,
                            low < 2 ? "0-1,4-5" : "2-3,6-7", low / 2);
    }

    EXPECT_EQ(twins_are_neighbours.order(first(8)), (numbers{0, 2, 4, 6, 1, 3, 5, 7}));
    EXPECT_EQ(twins_are_neighbours.order({1, 3, 6, 7}), (numbers{1, 3, 6, 7}))
        << "a core's only usable thread is its first";
    EXPECT_EQ(twins_come_last.order(first(8)), first(8));
}

TEST(Processors, NeighboursSharePackageNodeAndCache) {
    const made_up_machine alternating, clusters;
    for (int p = 0; p < 6; ++p) alternating.add(p, std::to_string(p), p % 2, p % 2 == 0 ? "0,2,4" : "1,3,5", p % 2);
    // One package with two memory nodes whose processors alternate in pairs; each has two caches.
    for (int p = 0; p < 8; ++p)
        clusters.add(p, std::to_string(p), 0, std::to_string(p % 4) + "," + std::to_string(p % 4 + 4), p % 4 / 2);

    EXPECT_EQ(alternating.order(first(6)), (numbers{0, 2, 4, 1, 3, 5}));
    EXPECT_EQ(clusters.order(first(8)), (numbers{0, 4, 1, 5, 2, 6, 3, 7}));
}

TEST(Processors, AreInTheirNumbersOrderWhereNothingIsKnown) {
    EXPECT_EQ(order_of_use({9, 4, 70}, "/nonexistent"), (numbers{4, 9, 70}));
}

TEST(Processors, EachRankHasItsOwnWhereThatIsPossible) {
    using lists = std::vector<numbers>;

    EXPECT_EQ(one_processor_each({}), numbers{});
    EXPECT_EQ(one_processor_each(lists(3, {0, 2, 4, 1})), (numbers{0, 2, 4}));
    EXPECT_EQ(one_processor_each(lists(3, {0, 1})), (numbers{-1, -1, -1}));
    EXPECT_EQ(one_processor_each({{0, 1, 2}, {0}, {1, 0}}), (numbers{2, 0, 1})) << "who can gives way";
    EXPECT_EQ(one_processor_each({{3}, {3}, {3, 4}}), (numbers{-1, -1, 4})) << "others are no worse for it";
    EXPECT_EQ(one_processor_each({{}, {1000}}), (numbers{-1, 1000}));
}

/// Tries all ways of assigning processors: a rank has its own if every way that serves the most ranks serves it.
TEST(Processors, WhoSharesIsWhoSomeBestWayLeavesOut) {
    std::mt19937 random(7);
    for (int trial = 0; trial < 500; ++trial) {
        std::vector<numbers> usable(1 + random() % 5);
        for (numbers& list : usable) {
            list = first(5);
            std::ranges::shuffle(list, random);
            list.resize(random() % 4);
        }
        std::size_t most = 0;
        std::vector<bool> always; // served by all ways that serve `most`
        numbers given(usable.size(), -1);
        const std::function<void(std::size_t)> try_from = [&](std::size_t rank) {
            if (rank < usable.size()) {
                given[rank] = -1;
                try_from(rank + 1);
                for (const int p : usable[rank]) {
                    if (std::find(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(rank), p) !=
                        given.begin() + static_cast<std::ptrdiff_t>(rank))
                        continue;
                    given[rank] = p;
                    try_from(rank + 1);
                }
                return;
            }
            const auto served = usable.size() - static_cast<std::size_t>(std::ranges::count(given, -1));
            if (served > most) most = served, always.assign(usable.size(), true);
            if (served < most) return;
            always.resize(usable.size(), true);
            for (std::size_t r = 0; r < usable.size(); ++r) always[r] = always[r] && given[r] != -1;
        };
        try_from(0);

        const numbers seen = one_processor_each(usable);
        for (std::size_t r = 0; r < usable.size(); ++r) {
            EXPECT_EQ(seen[r] >= 0, always[r]) << "trial " << trial << ", rank " << r;
            if (seen[r] < 0) continue;
            EXPECT_EQ(std::ranges::count(usable[r], seen[r]), 1);
            EXPECT_EQ(std::ranges::count(seen, seen[r]), 1);
        }
    }
}

TEST(Processors, AThreadThatIsBoundMayUseThoseOnly) {
    std::thread([] {
        const numbers all = usable_processors();
        ASSERT_FALSE(all.empty());
        const int last = all.back();

        EXPECT_TRUE(bind_to({&last, 1}));
        EXPECT_EQ(usable_processors(), numbers{last});
        EXPECT_FALSE(bind_to({}));
        EXPECT_EQ(usable_processors(), numbers{last});
    }).join();
}

TEST(Processors, AreWrittenAsRanges) {
    EXPECT_EQ(to_text({}), "");
    EXPECT_EQ(to_text({8, 1, 0, 2, 3}), "0-3,8");
    EXPECT_EQ(to_text({5, 7, 64, 65}), "5,7,64-65");
}

} // namespace
