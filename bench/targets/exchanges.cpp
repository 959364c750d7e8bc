// SPDX-License-Identifier: Apache-2.0
// Exchanges: bench_halo's lines of "halo" and "halo_detail" (halo/report.hpp).
#include "targets/figures.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>

namespace halocline::bench {
namespace {

/// All contenders at one point, by one measure, in one speed of the machine.
struct exchange_point {
    int ranks = 0, bytes_per_site = 0;
    std::array<int, 4> cut{}, extents{};
    std::string layout, measure, speed;
    bool own_cores = true; ///< has each rank its own cores?
    auto operator<=>(const exchange_point&) const = default;

    explicit exchange_point(const nlohmann::json& line)
        : ranks(line.at("ranks")), bytes_per_site(line.at("bytes_per_site")), cut(line.at("cut")),
          extents(line.at("L")), layout(line.at("layout")), measure(line.at("measure")), speed(line.at("machine")),
          own_cores(line.value("pinned", ranks <= 2)) {}

    [[nodiscard]] std::string point() const {
        const auto& l = extents;
        std::string text = std::to_string(l[0]);
        if (std::ranges::count(l, l[0]) == 4) return text + "^4";
        for (std::size_t mu = 1; mu < l.size(); ++mu) text += '.' + std::to_string(l[mu]);
        return text;
    }
    [[nodiscard]] double sites() const {
        return std::accumulate(extents.begin(), extents.end(), 1.0, std::multiplies<>());
    }
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
    [[nodiscard]] std::string kind() const {
        return measure + ", cut in " + dimensions() + ", " + layout +
               (bytes_per_site == 96 ? "" : ", " + std::to_string(bytes_per_site) + " B/site");
    }
    [[nodiscard]] std::string what() const { return ranks == 2 ? kind() : std::to_string(ranks) + " ranks, " + kind(); }
    [[nodiscard]] std::string what(bool chosen) const {
        return what() + (chosen && !left_to_choose() ? ", left to choose" : "");
    }
};

quickest ours(const line_list& all, bool left_to_choose) {
    return quickest_of(all, "us_median", [&](const nlohmann::json& l) {
        return l["who"] == "ours" && l.value("threads", 1) == 1 && (l["mode"] == "automatic") == left_to_choose;
    });
}

quickest one_copy_limit(const line_list& all) {
    return quickest_of(all, "us_median", [](const nlohmann::json& l) { return l["who"] == "limit"; });
}

/// "openmpi", "mpich"; "": either. As installed, or tuned.
quickest mpi(const line_list& all, const std::string& name, const std::string& settings) {
    return quickest_of(all, "us_median", [&](const nlohmann::json& l) {
        return l.value("settings", "") == settings && (name.empty() || l["who"] == name);
    });
}

/// What the better MPI's time divided by ours should be.
double least_gain(const exchange_point& p) {
    if (p.cut[0] > 1) return p.layout == "padded" ? 1.3 : 1.7; // strided faces
    const int longest = *std::ranges::max_element(p.extents);
    return longest <= 4 ? 1.7 : longest <= 8 ? 2.5 : 3;
}

/// Can wider vectors beat the limit's loop? For faces in runs of one or two sites, whose length the loop knows
/// (halo/box_faces.hpp: 96 and 192 bytes), it moves 16 bytes at a time, the vectors of a program for any x86-64. Longer
/// runs are left to the C library's memcpy, which uses the machine's widest vectors.
bool vectors_can_beat(const nlohmann::json& limit) {
    constexpr int longest = 192;
    return limit.contains("run_bytes") && limit["run_bytes"] <= longest;
}
/// The greatest figure that is printed as less than 1.
constexpr double below_one = 0.99;

/// Does what the limit reaches excuse ours? Not if only the limit was disturbed.
bool counts(const quickest& limit, bool figure_is_noisy) { return limit && (figure_is_noisy || !limit.noisy()); }

/// Adds the figures of ranks that have a core each.
void add_of_own_cores(const exchange_point& p, const line_list& all, bool chosen, std::vector<figure>& figures) {
    const quickest we = ours(all, chosen);
    if (!we) return;
    const std::string what = p.what(chosen);
    const quickest limit = one_copy_limit(all);
    if (limit) {
        const double ratio = we.us / limit.us;
        const bool noisy = we.noisy() || limit.noisy();
        figures.push_back(
            {"ours / one-copy limit", what, p.point(), p.sites(), p.speed, ratio, 1.2, wanted::at_most, noisy});
        if (vectors_can_beat(*limit.line))
            figures.push_back({"ours / one-copy limit, short runs", what, p.point(), p.sites(), p.speed, ratio,
                               below_one, wanted::at_most, noisy});
    }
    if (const quickest best = mpi(all, "", "installed")) {
        const bool noisy = we.noisy() || best.noisy();
        figures.push_back({"the better MPI / ours", what, p.point(), p.sites(), p.speed, best.us / we.us, least_gain(p),
                           wanted::at_least, noisy, counts(limit, noisy) ? best.us / limit.us : 0, true});
    }
    if (const quickest best = mpi(all, "", "tuned"))
        figures.push_back({"the better tuned MPI / ours", what, p.point(), p.sites(), p.speed, best.us / we.us, 1.3,
                           wanted::at_least, we.noisy() || best.noisy()});
}

/// More ranks than cores, so that the speed of the machine can't be determined: what a plan chooses, and the faster of
/// our paths.
void add_of_shared_cores(const exchange_point& p, const line_list& all, std::vector<figure>& figures) {
    const quickest theirs = mpi(all, "openmpi", "installed");
    const quickest limit = one_copy_limit(all);
    for (const bool chosen : {false, true}) {
        const quickest we = ours(all, chosen);
        if (!we || !theirs) continue;
        const bool noisy = we.noisy() || theirs.noisy();
        figures.push_back({std::to_string(p.ranks) + " ranks: ours / Open MPI",
                           p.kind() + (chosen ? ", left to choose" : ", the better path"), p.point(), p.sites(), "",
                           we.us / theirs.us, 0.3, wanted::at_most, noisy,
                           counts(limit, noisy) ? limit.us / theirs.us : 0});
    }
}

/// What is left of an exchange without its wire. It moves no bytes, so the size of the box does not matter.
void add_of_one_rank(const exchange_point& p, const line_list& all, std::vector<figure>& figures) {
    const bool all_faces = std::ranges::count(p.cut, 1) == 4;
    const auto batched =
        quickest_of(all, "us_median", [](const nlohmann::json& l) { return l["mode"] == "empty-batched"; });
    if (batched && all_faces)
        figures.push_back({"start and finish over mock, 8 faces, ns", "one rank, 64 in a row", p.point(), p.sites(),
                           p.speed, 1e3 * batched.us, 60, wanted::at_most, batched.noisy()});
}

std::map<exchange_point, line_list> points_of(const run_lines& lines) {
    std::map<exchange_point, line_list> points;
    for (const char* bench : {"halo", "halo_detail"})
        for (const nlohmann::json* line : lines_of(lines, bench)) points[exchange_point(*line)].push_back(line);
    return points;
}

} // namespace

void add_exchange_figures(const run_lines& lines, std::vector<figure>& all) {
    for (const auto& [p, those] : points_of(lines)) {
        if (p.ranks == 1)
            add_of_one_rank(p, those, all);
        else if (p.own_cores)
            for (const bool chosen : p.choices()) add_of_own_cores(p, those, chosen, all);
        else
            add_of_shared_cores(p, those, all);
    }
}

std::vector<compared_point> compared_points(const run_lines& lines) {
    std::vector<compared_point> all;
    for (const auto& [p, those] : points_of(lines)) {
        const auto is_there = [&, &those = those](bool chosen) { return bool{ours(those, chosen)}; };
        if (p.ranks == 1 || !std::ranges::any_of(p.choices(), is_there)) continue;
        const char* const judged = p.own_cores ? "" : "openmpi"; // of ranks that share cores only this MPI
        all.push_back({p.what(), p.point(), p.own_cores ? p.speed : "", p.sites(), bool{one_copy_limit(those)},
                       bool{mpi(those, judged, "installed")}});
    }
    return all;
}

} // namespace halocline::bench
