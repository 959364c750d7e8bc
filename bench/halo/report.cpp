// SPDX-License-Identifier: Apache-2.0
#include "halo/report.hpp"

#include "halo/exchange_order.hpp"
#include "support/json_line.hpp"
#include "support/statistics.hpp"
#include "support/svg_chart.hpp"

#include <halocline/halo/path.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <string_view>

namespace halocline::bench {
namespace {

std::string extents_of(const point& p) {
    const coordinate& l = p.extents;
    if (std::all_of(l.begin(), l.end(), [&](int e) { return e == l[0]; })) return std::to_string(l[0]) + "^4";
    return lattice::to_string(l);
}

/// The fastest of some contenders in one measure and mode.
struct best {
    double us = std::numeric_limits<double>::infinity();
    const entry* who = nullptr;
    bool noisy = false;
    [[nodiscard]] bool known() const { return who != nullptr; }
};

template <class Which>
best fastest(const std::vector<entry>& entries, const std::vector<outcome>& outcomes, std::size_t measure,
             outcome::speed speed, Which&& which) {
    best b;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const series& s = outcomes[i].kept[speed];
        if (!outcomes[i].has_figure(speed) || s.us[measure].empty() || !which(entries[i])) continue;
        if (const double us = median(s.us[measure]); us < b.us) b = {us, &entries[i], outcomes[i].noisy};
    }
    return b;
}

// Cells of the table; "-": not known, n: noisy.
std::string decimals(int places, double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.*f", places, value);
    return text.data();
}
std::string us_of(const best& b) { return b.known() ? decimals(3, b.us) + (b.noisy ? "n" : "") : "-"; }
std::string ratio_of(const best& a, const best& b) { return a.known() && b.known() ? decimals(2, a.us / b.us) : "-"; }
std::string name_of(const best& b) {
    if (!b.known()) return "-";
    return b.who->who.who + " " + b.who->who.mode + (b.who->settings == "tuned" ? ", tuned" : "");
}

constexpr std::size_t exchange_alone = 1; ///< the index in `measures` of the exchange alone
static_assert(std::string_view(measures[exchange_alone]) == "bare");
/// The names in README.md.
constexpr std::array<const char*, 2> measure_names{"step", "alone"};

} // namespace

void report::write_json(const char* bench, const point& p, const entry& e, const outcome& seen, std::size_t measure,
                        outcome::speed speed) {
    const series& s = seen.kept[speed];
    json_line line;
    line.add("bench", bench).add("who", e.who.who);
    line.add("mode", e.who.mode + (e.settings == "tuned" ? "-tuned" : "")).add("transport", e.who.transport);
    line.add("ranks", ranks_).add("threads", e.threads).add("L", p.extents).add("bytes_per_site", p.bytes_per_site);
    line.add("cut", cut_of(p, ranks_)).add("layout", p.layout()).add("flag_ns", median(s.flag_ns));
    // Of batches, each the mean of many steps.
    line.add("us_median", median(s.us[measure])).add("us_p95", quantile(s.us[measure], 0.95));
    // Up to here the keys are a fixed interface, in this order; the rest is additional.
    line.add("us_min", quantile(s.us[measure], 0)).add("transfer_ns", median(s.transfer_ns));
    line.add("core_ns", median(s.core_ns));
    line.add("measure", measures[measure]);
    line.add("machine", seen.mixed ? "mixed" : speed == outcome::fast ? "fast" : "slow");
    if (!e.settings.empty()) line.add("settings", e.settings);
    if (e.who.who != "ours") line.add("beside", transport_);
    if (ranks_ == 1) line.add("self_exchange", true);
    line.add("run_bytes", local_box(p, 0).shortest_run());
    line.add("slices", s.slices).add("noisy", seen.noisy).add(facts_.line());
    std::fprintf(json_, "%s\n", line.text().c_str());
}

void report::write_lines(const point& p, const std::vector<entry>& entries, const std::vector<outcome>& outcomes,
                         outcome::speed most_seen) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const outcome& seen = outcomes[i];
        // A contender that saw only one mode often enough is reported in that mode.
        const outcome::speed other = most_seen == outcome::fast ? outcome::slow : outcome::fast;
        const outcome::speed judged = seen.has_figure(most_seen) ? most_seen : other;
        for (const outcome::speed speed : {outcome::fast, outcome::slow})
            for (std::size_t m = 0; m < measures.size(); ++m) {
                if (!seen.has_figure(speed) || seen.kept[speed].us[m].empty()) continue;
                write_json(m == exchange_alone && speed == judged ? "halo" : "halo_detail", p, entries[i], seen, m,
                           speed);
            }
    }
}

void report::write_head() {
    if (head_written_) return;
    head_written_ = true;
    std::fprintf(table_, "%-12s %6s %-4s %-8s %-4s %-5s | %9s %9s %-11s %6s %9s | %9s %-20s %6s | %9s %-27s %6s\n", "L",
                 "B/site", "cut", "layout", "mode", "what", "limit us", "ours us", "path", "/limit", "chosen us",
                 "MPI us", "best as installed", "/ours", "MPI us", "best, tuned too", "/ours");
}

void report::write_overhead(const point& p, const std::vector<entry>& entries, const std::vector<outcome>& outcomes,
                            outcome::speed speed) {
    const auto mock = [&](const char* mode) {
        return fastest(entries, outcomes, exchange_alone, speed,
                       [&](const entry& e) { return e.who.who == "mock" && e.who.mode == mode; });
    };
    const best batched = mock("empty-batched"), single = mock("empty");
    if (!batched.known() || !single.known()) return;
    std::fprintf(table_,
                 "%-12s %6d %-4s start + finish over mock, %zu faces, nothing packed: %.0f ns, %d in a row; %.0f ns, "
                 "each behind a change of its faces and between two readings of the clock\n",
                 extents_of(p).c_str(), p.bytes_per_site, p.cut_name().c_str(), 2 * p.cut_name().size(),
                 1e3 * batched.us, in_a_row, 1e3 * single.us);
}

void report::write_rows(const point& p, const std::vector<entry>& entries, const std::vector<outcome>& outcomes,
                        std::size_t measure, outcome::speed speed) {
    write_head();
    if (ranks_ == 1 && measure == exchange_alone) write_overhead(p, entries, outcomes, speed);
    std::set<int> teams;
    for (const entry& e : entries) teams.insert(e.threads);
    for (const int threads : teams) {
        const auto of = [&](auto&& which) {
            return fastest(entries, outcomes, measure, speed,
                           [&](const entry& e) { return e.threads == threads && which(e); });
        };
        const auto left_to_choose = [](const entry& e) { return e.who.mode == halo::to_string(halo::path::automatic); };
        const best limit = of([](const entry& e) { return e.who.who == "limit"; });
        const best path_asked_for = of([&](const entry& e) { return e.who.who == "ours" && !left_to_choose(e); });
        const best chosen = of([&](const entry& e) { return e.who.who == "ours" && left_to_choose(e); });
        // A program's step has the path that its plan chooses.
        const best ours = measure != exchange_alone && chosen.known() ? chosen : path_asked_for;
        const best mpi = of([](const entry& e) { return e.settings == "installed"; });
        const best tuned = of([](const entry& e) { return !e.settings.empty(); });
        if (!ours.known() && !chosen.known() && threads > 1) continue;
        std::string path = ours.known() ? ours.who->who.mode : "-";
        if (threads > 1) path += " x" + std::to_string(threads);
        std::fprintf(table_, "%-12s %6d %-4s %-8s %-4s %-5s | %9s %9s %-11s %6s %9s | %9s %-20s %6s | %9s %-27s %6s\n",
                     extents_of(p).c_str(), p.bytes_per_site, p.cut_name().c_str(), p.layout(),
                     speed == outcome::fast ? "fast" : "slow", measure_names[measure], us_of(limit).c_str(),
                     us_of(ours).c_str(), path.c_str(), ratio_of(ours, limit).c_str(), us_of(chosen).c_str(),
                     us_of(mpi).c_str(), name_of(mpi).c_str(), ratio_of(mpi, ours).c_str(), us_of(tuned).c_str(),
                     name_of(tuned).c_str(), ratio_of(tuned, ours).c_str());
    }
    for (std::size_t i = 0; i < entries.size(); ++i) { // programs of --peer that are no MPIs
        const series& s = outcomes[i].kept[speed];
        if (!entries[i].foreign || !outcomes[i].has_figure(speed) || s.us[measure].empty()) continue;
        std::fprintf(table_, "%*s %s %s: %.3f us%s\n", 40, "beside it", entries[i].who.who.c_str(),
                     entries[i].who.mode.c_str(), median(s.us[measure]), outcomes[i].noisy ? " (noisy)" : "");
    }
    std::fflush(table_);
}

void report::add(const point& p, const std::vector<entry>& entries, const std::vector<outcome>& outcomes) {
    for (const auto speed : {outcome::fast, outcome::slow}) {
        const bool any = std::ranges::any_of(outcomes, [&](const outcome& o) { return o.has_figure(speed); });
        for (std::size_t m = 0; table_ && any && m < measures.size(); ++m) write_rows(p, entries, outcomes, m, speed);
    }
    const outcome::speed speed = most_seen(outcomes);
    if (json_) write_lines(p, entries, outcomes, speed);
    std::map<std::string, double> medians;
    for (std::size_t i = 0; i < entries.size(); ++i) {
        const series& s = outcomes[i].kept[speed];
        const entry& e = entries[i];
        if (!outcomes[i].has_figure(speed) || e.who.mode.starts_with("empty")) continue; // not an exchange
        std::string name = e.settings == "tuned" ? e.who.who + ", tuned" : e.who.who;
        if (e.threads > 1) name += " x" + std::to_string(e.threads); // the others have one thread
        double& shown = medians.try_emplace(name, std::numeric_limits<double>::infinity()).first->second;
        shown = std::min(shown, median(s.us[0]));
    }
    chart_["cut in " + p.cut_name() + ", " + p.layout()].push_back(
        {extents_of(p) + ", " + std::to_string(p.bytes_per_site) + " B", medians});
}

void report::leave_out(const point& p, const char* why) {
    std::fprintf(stderr, "bench_halo: left out: %s, %d B/site, cut in %s, %s: %s\n", extents_of(p).c_str(),
                 p.bytes_per_site, p.cut_name().c_str(), p.layout(), why);
    if (!json_) return;
    json_line line;
    line.add("bench", "halo_left_out").add("who", "ours").add("transport", transport_).add("ranks", ranks_);
    line.add("L", p.extents).add("bytes_per_site", p.bytes_per_site).add("cut", cut_of(p, ranks_));
    line.add("layout", p.layout()).add("why", why).add(facts_.line());
    std::fprintf(json_, "%s\n", line.text().c_str());
}

std::string report::svg() const {
    std::vector<chart_panel> panels;
    for (const auto& [title, categories] : chart_) {
        chart_panel panel{.title = title, .categories = {}, .lines = {}};
        std::map<std::string, std::vector<double>> lines;
        for (const auto& [category, medians] : categories)
            for (const auto& [name, us] : medians) lines[name];
        for (const auto& [category, medians] : categories) {
            panel.categories.push_back(category);
            for (auto& [name, values] : lines) values.push_back(medians.contains(name) ? medians.at(name) : 0);
        }
        for (auto& [name, values] : lines) panel.lines.push_back({name, values});
        panels.push_back(std::move(panel));
    }
    return svg_chart("A step with its exchange: source dirtied, ghosts read; best mode of each, " +
                         std::to_string(ranks_) + " ranks",
                     "µs", panels);
}

} // namespace halocline::bench
