// SPDX-License-Identifier: Apache-2.0
// What plans cost, and what the solver gains: lines of bench_plan_setup, bench_halo and `scripts/bench.sh coarse_halo`.
#include "targets/figures.hpp"

#include <functional>
#include <initializer_list>
#include <set>
#include <utility>

namespace halocline::bench {
namespace {

using nlohmann::json;

std::string number_of_ranks(int ranks) { return std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks"); }

/// The number that a line has under `key`; these benches have no contenders.
term own(const char* key) {
    return {ours_name, key, [](const json&) { return true; }};
}

std::vector<place> of_names(std::initializer_list<const char*> names) {
    std::vector<place> places;
    for (const char* const name : names) places.push_back({.point = name});
    return places;
}

/// A place for each line of a bench that `where` accepts; it fills in point and size.
std::vector<place> places_of(const run_lines& lines, const char* bench,
                             const std::function<bool(const json&, place&)>& where) {
    std::vector<place> places;
    for (const json* l : lines_of(lines, bench)) {
        place p{.point = "", .lines = {l}};
        if (is_within_host(*l) && where(*l, p)) places.push_back(p);
    }
    return places;
}

void judge_making(const run_lines& lines, std::vector<figure>& all) {
    std::set<int> jobs{1, 2};
    for (const json* l : lines_of(lines, "plan_setup")) jobs.insert(l->at("ranks").get<int>());
    for (const int ranks : jobs)
        for (const auto& [which, key] : {std::pair{"later ones", "ms_median"}, std::pair{"the first", "ms_first"}})
            judge({.name = "making a plan of 8 faces, 16^4 local, ms",
                   .of = number_of_ranks(ranks) + ", " + which,
                   .side = wanted::at_most,
                   .bound = always(2),
                   .form = target::number,
                   .above = own(key),
                   .points = of_names({"appended", "padded, faces", "padded, corners"})},
                  places_of(lines, "plan_setup",
                            [&, ranks = ranks](const json& l, place& p) {
                                p.point = l.at("plan");
                                return l.at("ranks") == ranks;
                            }),
                  all);
}

void judge_memory(const run_lines& lines, std::vector<figure>& all) {
    const auto of_ranks = [](int ranks) {
        return place{.point = number_of_ranks(ranks), .size = static_cast<double>(ranks)};
    };
    judge({.name = "memory of a plan / ghost bytes",
           .of = "its own slots, written directly",
           .side = wanted::at_most,
           .bound = always(2),
           .form = target::number,
           .above = own("memory_over_ghosts"),
           .points = {of_ranks(1), of_ranks(2), of_ranks(4)}},
          places_of(lines, "halo_plan",
                    [&](const json& l, place& p) {
                        const place named = of_ranks(l.at("ranks"));
                        p.point = named.point;
                        p.size = named.size;
                        return true;
                    }),
          all);
}

void judge_coarse_halo(const run_lines& lines, std::vector<figure>& all) {
    std::vector<place> places;
    for (const json* l : lines_of(lines, "coarse_halo"))
        if (l->contains("halo_over_shm")) places.push_back({.point = l->at("transport"), .lines = {l}});
    judge({.name = "halo of the coarse level: over MPI / over shm",
           .of = "the demo's solve",
           .side = wanted::at_least,
           .bound = always(2),
           .form = target::number,
           .above = own("halo_over_shm"),
           .points = of_names({"openmpi", "mpich"})},
          places, all);
}

} // namespace

void add_setup_figures(const run_lines& lines, std::vector<figure>& all) {
    judge_making(lines, all);
    judge_memory(lines, all);
    judge_coarse_halo(lines, all);
}

} // namespace halocline::bench
