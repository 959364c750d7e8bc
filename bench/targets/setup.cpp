// SPDX-License-Identifier: Apache-2.0
// What plans cost, and what the solver gains: lines of bench_plan_setup, bench_halo and `scripts/bench.sh coarse_halo`.
#include "targets/figures.hpp"

namespace halocline::bench {
namespace {

std::string ranks_of(const nlohmann::json& line) {
    const int ranks = line.at("ranks");
    return std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
}

} // namespace

void add_setup_figures(const run_lines& lines, std::vector<figure>& all) {
    for (const nlohmann::json* l : lines_of(lines, "plan_setup")) {
        const std::string plan = l->at("plan"), ranks = ranks_of(*l);
        const auto add = [&](const char* which, const char* key) {
            all.push_back({"making a plan of 8 faces, 16^4 local, ms", ranks + ", " + which, plan, 0, "", l->at(key), 2,
                           wanted::at_most, false});
        };
        add("later ones", "ms_median");
        add("the first", "ms_first");
    }
    for (const nlohmann::json* l : lines_of(lines, "halo_plan"))
        all.push_back({"memory of a plan / ghost bytes", "its own slots, written directly", ranks_of(*l),
                       l->at("ranks"), "", l->at("memory_over_ghosts"), 2, wanted::at_most, false});
    for (const nlohmann::json* l : lines_of(lines, "coarse_halo"))
        if (l->contains("halo_over_shm"))
            all.push_back({"halo of the coarse level: over MPI / over shm", "the demo's solve", l->at("transport"), 0,
                           "", l->at("halo_over_shm"), 2, wanted::at_least, false});
}

} // namespace halocline::bench
