// SPDX-License-Identifier: Apache-2.0
// Exchanges: lines of bench_halo.
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
    auto operator<=>(const exchange_point&) const = default;

    explicit exchange_point(const nlohmann::json& line)
        : ranks(line.at("ranks")), bytes_per_site(line.at("bytes_per_site")), cut(line.at("cut")),
          extents(line.at("L")), layout(line.at("layout")), measure(line.at("measure")), speed(line.at("machine")) {}

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
    /// By bare the quicker of our paths counts, by step what a plan chooses.
    [[nodiscard]] bool left_to_choose() const { return measure == "step"; }
    [[nodiscard]] std::string what() const {
        return measure + ", cut in " + dimensions() + ", " + layout +
               (bytes_per_site == 96 ? "" : ", " + std::to_string(bytes_per_site) + " B/site");
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

/// What the better MPI's time over ours ought to be.
double least_gain(const exchange_point& p) {
    if (p.cut[0] > 1) return p.layout == "padded" ? 1.3 : 1.7; // strided faces
    const int longest = *std::ranges::max_element(p.extents);
    return longest <= 4 ? 1.7 : longest <= 8 ? 2.5 : 3;
}

void add_of_two_ranks(const exchange_point& p, const line_list& all, std::vector<figure>& figures) {
    const quickest we = ours(all, p.left_to_choose());
    if (!we) return;
    const quickest limit = one_copy_limit(all);
    if (limit)
        figures.push_back({"ours / one-copy limit", p.what(), p.point(), p.sites(), p.speed, we.us / limit.us, 1.2,
                           wanted::at_most, we.noisy() || limit.noisy()});
    if (const quickest best = mpi(all, "", "installed"))
        figures.push_back({"the better MPI / ours", p.what(), p.point(), p.sites(), p.speed, best.us / we.us,
                           least_gain(p), wanted::at_least, we.noisy() || best.noisy(), limit ? best.us / limit.us : 0,
                           true});
    if (const quickest best = mpi(all, "", "tuned"))
        figures.push_back({"the better tuned MPI / ours", p.what(), p.point(), p.sites(), p.speed, best.us / we.us, 1.3,
                           wanted::at_least, we.noisy() || best.noisy()});
}

/// More ranks than cores, where the speed of the machine can't be told: what a plan chooses, and the quicker of our
/// paths.
void add_of_four_ranks(const exchange_point& p, const line_list& all, std::vector<figure>& figures) {
    const quickest theirs = mpi(all, "openmpi", "installed");
    const quickest limit = one_copy_limit(all);
    for (const bool chosen : {false, true}) {
        const quickest we = ours(all, chosen);
        if (!we || !theirs) continue;
        figures.push_back({"4 ranks: ours / Open MPI", p.what() + (chosen ? ", left to choose" : ", the better path"),
                           p.point(), p.sites(), "", we.us / theirs.us, 0.3, wanted::at_most,
                           we.noisy() || theirs.noisy(), limit ? limit.us / theirs.us : 0});
    }
}

} // namespace

void add_exchange_figures(const run_lines& lines, std::vector<figure>& all) {
    std::map<exchange_point, line_list> points;
    for (const nlohmann::json* line : lines_of(lines, "halo")) points[exchange_point(*line)].push_back(line);
    for (const auto& [p, those] : points) {
        if (p.ranks == 2) add_of_two_ranks(p, those, all);
        if (p.ranks == 4) add_of_four_ranks(p, those, all);
        if (p.ranks > 1 || p.measure != "bare") continue;
        const auto empty =
            quickest_of(those, "us_median", [](const nlohmann::json& l) { return l["mode"] == "empty"; });
        if (empty)
            all.push_back({"start and finish over mock, 8 faces, ns", "one rank", p.point(), p.sites(), p.speed,
                           1e3 * empty.us, 60, wanted::at_most, empty.noisy()});
    }
}

} // namespace halocline::bench
