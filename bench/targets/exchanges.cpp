// SPDX-License-Identifier: Apache-2.0
// Exchanges: bench_halo's lines of "halo" and "halo_detail" (halo/report.hpp).
#include "support/peer_names.hpp"
#include "targets/figures.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>

namespace halocline::bench {
namespace {

/// What the rows of the tables tell apart: how a field is cut and laid out, and what is timed.
struct exchange_kind {
    int ranks = 2, bytes_per_site = 96;
    std::array<int, 4> cut{}; ///< ranks along each dimension; of one rank 1 where it exchanges with itself
    std::string layout, measure;
    bool own_cores = true; ///< has each rank its own cores?
    auto operator<=>(const exchange_kind&) const = default;

    /// The dimensions that are cut: "t", "xt".
    [[nodiscard]] std::string dimensions() const {
        std::string names;
        for (std::size_t mu = 0; mu < cut.size(); ++mu)
            if (cut[mu] > 1) names += "xyzt"[mu];
        return names;
    }
    /// For measure "bare" the faster of our paths counts; for "step", the one that a plan chooses.
    [[nodiscard]] bool left_to_choose() const { return measure == "step"; }
    /// What is judged: ours with the path left to choose, or not. For "bare" both: a plan should find the faster path.
    [[nodiscard]] std::vector<bool> choices() const {
        return left_to_choose() ? std::vector{true} : std::vector{false, true};
    }
    [[nodiscard]] std::string name() const {
        return measure + ", cut in " + dimensions() + ", " + layout +
               (bytes_per_site == 96 ? "" : ", " + std::to_string(bytes_per_site) + " B/site");
    }
    [[nodiscard]] std::string what(bool chosen) const {
        return (ranks == 2 ? "" : std::to_string(ranks) + " ranks, ") + name() +
               (chosen && !left_to_choose() ? ", left to choose" : "");
    }
};

exchange_kind kind_of(const nlohmann::json& line, const std::string& measure) {
    const int ranks = line.at("ranks");
    return {ranks,   line.at("bytes_per_site"),       line.at("cut"), line.at("layout"),
            measure, line.value("pinned", ranks <= 2)};
}

place box(const std::array<int, 4>& extents, const std::string& speed = "", int run_bytes = 0) {
    std::string name = std::to_string(extents[0]);
    if (std::ranges::count(extents, extents[0]) == 4)
        name += "^4";
    else
        for (std::size_t mu = 1; mu < extents.size(); ++mu) name += '.' + std::to_string(extents[mu]);
    return {.point = name,
            .size = std::accumulate(extents.begin(), extents.end(), 1.0, std::multiplies<>()),
            .speed = speed,
            .longest = *std::ranges::max_element(extents),
            .run_bytes = run_bytes};
}

/// Ours of one thread; `chosen`: with the path left to choose, otherwise the faster of the others.
term ours(bool chosen) {
    return {ours_name, "us_median", [=](const nlohmann::json& l) {
                return l.at("who") == "ours" && l.value("threads", 1) == 1 && (l.at("mode") == "automatic") == chosen;
            }};
}

term one_copy_limit() {
    return {"one-copy limit", "us_median", [](const nlohmann::json& l) { return l.at("who") == "limit"; }};
}

/// The better MPI, as installed.
term better_mpi() {
    return {"MPI", "us_median", [](const nlohmann::json& l) {
                return is_mpi(l.at("who").get<std::string>()) && l.value("settings", "") == "installed";
            }};
}
/// The same with the better settings: as installed, or tuned.
term best_mpi() {
    return {"MPI", "us_median", [](const nlohmann::json& l) { return is_mpi(l.at("who").get<std::string>()); }};
}

term installed_openmpi() {
    return {"Open MPI", "us_median",
            [](const nlohmann::json& l) { return l.at("who") == "openmpi" && l.value("settings", "") == "installed"; }};
}

/// What the better MPI's time divided by ours should be.
double least_gain(const exchange_kind& k, int longest_extent) {
    if (k.cut[0] > 1) return k.layout == "padded" ? 1.3 : 1.7; // strided faces
    return longest_extent <= 4 ? 1.7 : longest_extent <= 8 ? 2.5 : 3;
}

/// Can wider vectors beat the limit's loop? For faces in runs of one or two sites, whose length the loop knows
/// (halo/box_faces.hpp: 96 and 192 bytes), it moves 16 bytes at a time, the vectors of a program for any x86-64. Longer
/// runs are left to the C library's memcpy, which uses the machine's widest vectors.
bool vectors_can_beat_limit(const place& p) {
    constexpr int longest = 192;
    return p.run_bytes > 0 && p.run_bytes <= longest;
}
/// The greatest figure that is printed as less than 1.
constexpr double below_one = 0.99;

/// Steps of each box, which docs/status.md and README.md show.
std::function<std::string(const place&)> step_in_short(const exchange_kind& k, bool chosen, const std::string& beside) {
    if (k.measure != "step" || !chosen || k.bytes_per_site != 96) return {};
    return [=](const place& p) { return std::to_string(k.ranks) + " ranks, a step, " + p.point + ": " + beside; };
}

/// What is judged if each rank has a core of its own.
std::vector<target> targets_of_own_cores(const exchange_kind& k, bool chosen, const std::vector<place>& points) {
    const std::string of = k.what(chosen);
    return {{.name = "ours / one-copy limit",
             .of = of,
             .side = wanted::at_most,
             .bound = always(1.2),
             .above = ours(chosen),
             .below = one_copy_limit(),
             .points = points},
            {.name = "ours / one-copy limit, short runs",
             .of = of,
             .side = wanted::at_most,
             .bound = always(below_one),
             .above = ours(chosen),
             .below = one_copy_limit(),
             .points = points,
             .applies = vectors_can_beat_limit},
            {.name = "the better MPI / ours",
             .of = of,
             .side = wanted::at_least,
             .bound = [k](const place& p, const nlohmann::json*) { return least_gain(k, p.longest); },
             .above = better_mpi(),
             .below = ours(chosen),
             .points = points,
             .limit = one_copy_limit(),
             .limit_suffices = true},
            {.name = "the better MPI, tuned or not / ours",
             .of = of,
             .side = wanted::at_least,
             .bound = always(1.3),
             .above = best_mpi(),
             .below = ours(chosen),
             .points = points,
             .in_short = step_in_short(k, chosen, "the quickest MPI")}};
}

/// What is judged if ranks outnumber cores, so that the speed of the machine can't be determined: what a plan chooses,
/// and the faster of our paths.
std::vector<target> targets_of_shared_cores(const exchange_kind& k, const std::vector<place>& points) {
    std::vector<target> all;
    for (const bool chosen : {false, true})
        all.push_back({.name = std::to_string(k.ranks) + " ranks: ours / Open MPI",
                       .of = k.name() + (chosen ? ", left to choose" : ", the better path"),
                       .side = wanted::at_most,
                       .bound = always(0.3),
                       .above = ours(chosen),
                       .below = installed_openmpi(),
                       .points = points,
                       .limit = one_copy_limit(),
                       .in_short = step_in_short(k, chosen, "Open MPI")});
    return all;
}

/// What is left of an exchange without its wire. It moves no bytes, so the size of the box does not matter.
target without_wire(const std::vector<place>& points) {
    const auto in_a_row = [](const nlohmann::json& l) { return l.at("mode") == "empty-batched"; };
    return {.name = "start and finish over mock, 8 faces, ns",
            .of = "one rank, 64 in a row",
            .side = wanted::at_most,
            .bound = always(60),
            .form = target::number,
            .scale = 1e3, // from microseconds
            .above = {ours_name, "us_median", in_a_row},
            .points = points};
}

using kinds = std::map<exchange_kind, std::vector<place>>;

/// What `scripts/bench.sh targets` measures.
kinds expected_kinds() {
    kinds all;
    const auto boxes = [](int run_bytes) {
        return std::vector{box({4, 4, 4, 4}, "", run_bytes), box({8, 8, 8, 8}, "", run_bytes),
                           box({16, 16, 16, 16}, "", run_bytes)};
    };
    for (const std::string layout : {"appended", "padded"})
        for (const std::string measure : {"bare", "step"}) {
            all[{2, 96, {1, 1, 1, 2}, layout, measure, true}] = boxes(0);
            all[{2, 96, {2, 1, 1, 1}, layout, measure, true}] = boxes(96);
            all[{4, 96, {1, 1, 1, 4}, layout, measure, false}] = boxes(0);
        }
    all[{1, 96, {1, 1, 1, 1}, "appended", "bare", true}] = {box({4, 4, 4, 4})};
    return all;
}

/// What was measured, and what was left out for lack of time.
kinds measured_kinds(const run_lines& lines) {
    using key = std::tuple<exchange_kind, std::array<int, 4>, std::string>;
    std::map<key, place> places;
    const auto place_at = [&](const nlohmann::json& line, const std::string& measure,
                              const std::string& speed) -> auto& {
        const std::array<int, 4> extents = line.at("L");
        return places.try_emplace({kind_of(line, measure), extents, speed}, box(extents, speed)).first->second;
    };
    for (const char* bench : {"halo", "halo_detail"})
        for (const nlohmann::json* line : lines_of(lines, bench)) {
            if (!is_within_host(*line)) continue;
            const std::string machine = line->at("machine");
            place& p = place_at(*line, line->at("measure"), machine == "mixed" ? "slow" : machine); // these are noisy
            p.lines.push_back(line);
            p.run_bytes = line->value("run_bytes", p.run_bytes);
        }
    for (const nlohmann::json* line : lines_of(lines, "halo_left_out"))
        if (is_within_host(*line))
            for (const char* measure : {"bare", "step"}) place_at(*line, measure, "").left_out = "time";
    kinds all;
    for (auto& [where, p] : places) {
        const exchange_kind& kind = std::get<0>(where);
        if (kind.ranks > 1 && !kind.own_cores) p.speed = "";
        all[kind].push_back(p);
    }
    return all;
}

} // namespace

void add_exchange_figures(const run_lines& lines, std::vector<figure>& all) {
    kinds measured = measured_kinds(lines);
    const kinds expected = expected_kinds();
    for (const auto& [kind, points] : expected) measured.try_emplace(kind);
    for (const auto& [kind, places] : measured) {
        const auto found = expected.find(kind);
        const std::vector<place> points = found == expected.end() ? std::vector<place>() : found->second;
        const auto judge_all = [&, &places = places](const std::vector<target>& targets) {
            for (const target& t : targets) judge(t, places, all);
        };
        if (kind.ranks == 1) {
            const bool all_faces = std::ranges::count(kind.cut, 1) == 4;
            if (all_faces && kind.layout == "appended" && kind.measure == "bare")
                judge(without_wire(points), places, all);
        } else if (kind.own_cores) {
            for (const bool chosen : kind.choices()) judge_all(targets_of_own_cores(kind, chosen, points));
        } else {
            judge_all(targets_of_shared_cores(kind, points));
        }
    }
}

} // namespace halocline::bench
