// SPDX-License-Identifier: Apache-2.0
// What does a checksum after each message cost?   scripts/bench.sh checksum [--seconds S] [--rounds N]
// Exchanges of an L^4 box per rank, cut in t, 96 B per site, with checksums and without, which take turns. What is
// timed: halo/timed_slice.hpp; payloads are verified after each slice. For each L and mode of the machine in which both
// were seen one JSON line: medians of the slowest rank, and their ratio.
#include "halo/ours.hpp"
#include "support/command_line.hpp"
#include "support/json_line.hpp"
#include "support/probed_facts.hpp"
#include "support/rounds.hpp"
#include "support/series_line.hpp"
#include "support/statistics.hpp"

#include <array>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using namespace halocline;
using namespace halocline::bench;

/// `e` as one that takes turns.
contender taking_turns(const comm::job& j, const char* who, ours_appended& e) {
    const auto slice = [&j, who, &e](double seconds) {
        const auto greatest = [&](double x) { return slowest(j, {x})[0]; };
        const std::vector<double> us = slowest(j, timed_slice(e, seconds, greatest));
        j.collectively([&] {
            if (!verified(e)) throw error(std::string(who) + ": wrong ghosts on rank " + std::to_string(j.rank()));
        });
        return slice_times{{us.begin(), us.begin() + batches}, {us.begin() + batches, us.end()}};
    };
    return {who, "", j.transport(), slice};
}

/// A line for each mode of the machine in which both were seen. [0]: with checksums, [1]: without.
void print(const comm::job& j, int extent, const std::vector<outcome>& both, const run_facts& facts) {
    bool any = false;
    for (const auto speed : {outcome::fast, outcome::slow}) {
        if (!both[0].has_figure(speed) || !both[1].has_figure(speed)) continue;
        any = true;
        json_line line;
        line.add("bench", "checksum").add("transport", j.transport()).add("ranks", j.ranks()).add("L", extent);
        for (std::size_t m = 0; m < measures.size(); ++m) {
            const double with = median(both[0].kept[speed].us[m]), without = median(both[1].kept[speed].us[m]);
            const std::string measure = measures[m];
            line.add(measure + "_us", with)
                .add(measure + "_us_without", without)
                .add(measure + "_ratio", with / without);
        }
        line.add(facts_of(both[1].noisy ? both[1] : both[0], speed)).add(facts.line());
        std::puts(line.text().c_str());
    }
    if (!any) std::fprintf(stderr, "bench_checksum: L = %d: both were never seen in one mode of the machine\n", extent);
    std::fflush(stdout);
}

int run(app::program& program, int argc, const char* const* argv) {
    CLI::App cli("What does a checksum behind each message cost?");
    double seconds = 10;
    int rounds = 5;
    add_seconds(cli, seconds, "of the whole run, about");
    add_rounds(cli, rounds, "of turns, at least, for each box");
    program.parse(cli, argc, argv);
    const comm::job& j = program.join();
    flag_probe probe(j);
    const run_facts facts = facts_of(j);
    constexpr std::array extents{4, 8, 16};
    for (const int extent : extents) {
        point p{.extents = {extent, extent, extent, extent}, .grid = {1, 1, 1, j.ranks()}};
        p.self[3] = j.ranks() == 1;
        ours_appended with(j, p, halo::path::automatic, 1, true), without(j, p, halo::path::automatic, 1);
        const std::vector<contender> both{taking_turns(j, "with", with), taking_turns(j, "without", without)};
        const std::vector<outcome> seen =
            take_turns(j, probe, both, {.seconds = seconds / extents.size(), .rounds = rounds});
        if (j.rank() == 0) print(j, extent, seen, facts);
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) { return run_bench(argc, argv, run); }
