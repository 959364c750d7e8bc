// SPDX-License-Identifier: Apache-2.0
// Are the targets met?  scripts/bench.sh targets  (bench_targets RUN…)
//
// RUN is a file of JSON lines that other benches wrote in one go. Ratios are taken within a run; over several runs a
// figure is the median, with its range. Prints two tables in Markdown: one row per target with its worst figure, for
// docs/status.md, and all figures, for docs/measurements/; --json FILE gets one line per figure.
#include "support/command_line.hpp"
#include "support/json_line.hpp"
#include "support/output_file.hpp"
#include "targets/figures.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>

namespace {

using namespace halocline;
using namespace halocline::bench;

/// Err: input_error: no such file, or a line that is not JSON.
run_lines read_run(const std::string& path) {
    std::ifstream file(path);
    if (!file) throw input_error("can't read '" + path + "'");
    run_lines lines;
    std::string text;
    for (int number = 1; std::getline(file, text); ++number) {
        lines.push_back(nlohmann::json::parse(text, nullptr, false));
        if (!lines.back().is_object())
            throw input_error("'" + path + "', line " + std::to_string(number) + ": expected an object of JSON, not '" +
                              text.substr(0, 60) + "'");
    }
    return lines;
}

/// For an even number of values the mean of the middle two: there are only a few runs.
double middle(std::vector<double> values) {
    std::ranges::sort(values);
    return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

/// One figure over all runs: those without noise, or all of them if there is none.
struct pooled {
    figure first;
    std::vector<double> quiet, noisy, limits;
    void add(const figure& f) {
        (f.noisy ? noisy : quiet).push_back(f.value);
        if (f.limit > 0) limits.push_back(f.limit);
    }
    [[nodiscard]] const std::vector<double>& values() const { return quiet.empty() ? noisy : quiet; }
    [[nodiscard]] double value() const { return middle(values()); }
    [[nodiscard]] bool is_met() const {
        return met(value(), first.bound, first.side) ||
               (first.limit_suffices && limit_misses() && met(value(), middle(limits), first.side));
    }
    /// How far the value is on the right side of the bound: below 1 it is missed, unless the limit excuses it. Negative
    /// times are good.
    [[nodiscard]] double margin() const {
        return first.side == wanted::at_least ? value() / first.bound : 2 - value() / first.bound;
    }
    [[nodiscard]] bool limit_misses() const { return !limits.empty() && !met(middle(limits), first.bound, first.side); }
    /// "8^4 1.05", "8^4 **1.25** (1.1–1.4)", "8^4 1.5, limit 1.4", "8^4 1.05 *n*" (noisy).
    [[nodiscard]] std::string cell() const {
        const std::string mark = is_met() ? "" : "**";
        std::string text = first.point + ' ' + mark + printed(value()) + mark;
        const auto [least, most] = std::ranges::minmax(values());
        if (printed(least) != printed(most)) text += " (" + printed(least) + "–" + printed(most) + ")";
        if (limit_misses()) text += ", limit " + printed(middle(limits));
        return quiet.empty() ? text + " *n*" : text;
    }
    [[nodiscard]] std::string json() const {
        const auto [least, most] = std::ranges::minmax(values());
        json_line line;
        line.add("bench", "targets").add("target", first.target).add("of", first.of).add("point", first.point);
        line.add("speed", first.speed).add("seen", value()).add("least", least).add("most", most);
        line.add("runs", static_cast<int>(values().size())).add("noisy", quiet.empty());
        line.add("wanted", first.side == wanted::at_most ? "at most" : "at least").add("bound", first.bound);
        if (!limits.empty()) line.add("limit", middle(limits));
        return line.add("met", is_met()).text();
    }
};

/// Err: input_error: a line of a bench lacks keys that its lines have.
std::vector<figure> judged(const std::string& path) {
    try {
        return figures_of(read_run(path));
    } catch (const nlohmann::json::exception& e) {
        throw input_error("'" + path + "': a line is none of its bench: " + e.what());
    }
}

std::vector<pooled> pool(const std::vector<std::string>& paths) {
    std::vector<pooled> all;
    for (const std::string& path : paths)
        for (const figure& f : judged(path)) {
            const auto same = [&](const pooled& p) {
                return p.first.target == f.target && p.first.of == f.of && p.first.point == f.point &&
                       p.first.speed == f.speed;
            };
            auto found = std::ranges::find_if(all, same);
            if (found == all.end()) found = all.insert(all.end(), {f, {}, {}, {}});
            found->add(f);
        }
    return all;
}

/// A row: all points of one target and kind of exchange, the small ones first.
struct row {
    std::string target, of;
    double least_bound, most_bound;
    wanted side;
    std::map<std::string, std::vector<const pooled*>> figures; // by speed

    [[nodiscard]] std::string cell(const std::string& speed) {
        std::vector<const pooled*>& points = figures[speed];
        std::ranges::stable_sort(points, {}, [](const pooled* p) { return p->first.size; });
        std::string text;
        for (const pooled* p : points) text += (text.empty() ? "" : "; ") + p->cell();
        return text.empty() ? "–" : text;
    }
};

std::vector<row> rows_of(const std::vector<pooled>& all) {
    std::vector<row> rows;
    for (const pooled& p : all) {
        auto r =
            std::ranges::find_if(rows, [&](const row& o) { return o.target == p.first.target && o.of == p.first.of; });
        if (r == rows.end())
            r = rows.insert(rows.end(), {p.first.target, p.first.of, p.first.bound, p.first.bound, p.first.side, {}});
        r->least_bound = std::min(r->least_bound, p.first.bound);
        r->most_bound = std::max(r->most_bound, p.first.bound);
        r->figures[p.first.speed].push_back(&p);
    }
    // The rows of a target are kept together.
    std::vector<row> ordered;
    for (const row& r : rows)
        if (std::ranges::none_of(ordered, [&](const row& o) { return o.target == r.target; }))
            std::ranges::copy_if(rows, std::back_inserter(ordered), [&](const row& o) { return o.target == r.target; });
    return ordered;
}

std::string bounds_of(const row& r) {
    std::string text = printed(r.least_bound);
    if (printed(r.most_bound) != text) text += " to " + printed(r.most_bound);
    return (r.side == wanted::at_most ? "≤ " : "≥ ") + text;
}

/// A row per target: how many of its figures meet it, and the worst of them, a missed one if there is any.
void print_summary(std::vector<row> rows) {
    std::puts("| target | of | met | worst |\n|---|---|---|---|");
    for (row& r : rows) {
        std::vector<const pooled*> points;
        for (const auto& [speed, of_speed] : r.figures) points.insert(points.end(), of_speed.begin(), of_speed.end());
        const auto is_met = [](const pooled* p) { return p->is_met(); };
        const auto count = std::ranges::count_if(points, is_met);
        const pooled* const worst =
            *std::ranges::min_element(points, {}, [](const pooled* p) { return std::pair(p->is_met(), p->margin()); });
        const bool all_met = static_cast<std::size_t>(count) == points.size();
        std::printf("| %s %s | %s | %s%td of %zu%s | %s%s%s |\n", r.target.c_str(), bounds_of(r).c_str(), r.of.c_str(),
                    all_met ? "" : "**", count, points.size(), all_met ? "" : "**", worst->first.speed.c_str(),
                    worst->first.speed.empty() ? "" : " ", worst->cell().c_str());
    }
}

void print_figures(std::vector<row> rows) {
    std::puts("| target | of | fast mode | slow mode | either |\n|---|---|---|---|---|");
    for (row& r : rows)
        std::printf("| %s %s | %s | %s | %s | %s |\n", r.target.c_str(), bounds_of(r).c_str(), r.of.c_str(),
                    r.cell("fast").c_str(), r.cell("slow").c_str(), r.cell("").c_str());
}

void print_tables(const std::vector<pooled>& all) {
    const std::vector<row> rows = rows_of(all);
    print_summary(rows);
    std::puts("");
    print_figures(rows);
    const auto missed = std::ranges::count_if(all, [](const pooled& p) { return !p.is_met(); });
    std::printf(
        "\n%zu figures, %zu met, %zu missed (bold); in brackets the range over runs; limit: the one-copy limit's own\n"
        "figure where it misses the bound, too; n: noisy. bare: the exchange alone; step: with the source written "
        "before and\n"
        "the ghosts read after it. short runs: faces that the one-copy limit copies 16 bytes at a time (x is cut)\n",
        all.size(), all.size() - static_cast<std::size_t>(missed), static_cast<std::size_t>(missed));
}

int judge(app::program& program, int argc, const char* const* argv) {
    std::vector<std::string> runs;
    std::string json;
    CLI::App cli("Are the targets met?");
    cli.add_option("runs", runs, "files of JSON lines, one per run")->required();
    cli.add_option("--json", json, "file of JSON lines, one per figure")->check(not_empty);
    program.parse(cli, argc, argv);
    const std::vector<pooled> all = pool(runs);
    output_file json_file("--json", json);
    print_tables(all);
    if (std::FILE* const to = json_file.stream())
        for (const pooled& p : all) std::fprintf(to, "%s\n", p.json().c_str());
    json_file.close(program);
    return 0;
}

} // namespace

int main(int argc, char** argv) { return run_bench(argc, argv, judge); }
