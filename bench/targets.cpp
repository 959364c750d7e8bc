// SPDX-License-Identifier: Apache-2.0
// Are the targets met?  scripts/bench.sh targets  (bench_targets RUN…)
//
// RUN is a file of JSON lines that other benches wrote in one go. Ratios are taken within a run; over several runs a
// figure is the median, with its range; runs of different code are refused. Prints two tables in Markdown: one row per
// target with its worst figure, for docs/status.md, and all figures, for docs/measurements/; then the points of
// exchanges that lack figures; --json FILE gets one line per figure.
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

/// What some runs say about one figure: ours, and the limit in its place.
struct seen_values {
    std::vector<double> values, limits;
};

/// One figure over all runs: those without noise, or all of them if there is none.
struct pooled {
    figure first;
    seen_values quiet, noisy;
    void add(const figure& f) {
        seen_values& to = f.noisy ? noisy : quiet;
        to.values.push_back(f.value);
        if (f.limit > 0) to.limits.push_back(f.limit);
    }
    [[nodiscard]] bool is_noisy() const { return quiet.values.empty(); }
    [[nodiscard]] const std::vector<double>& values() const { return is_noisy() ? noisy.values : quiet.values; }
    [[nodiscard]] const std::vector<double>& limits() const { return is_noisy() ? noisy.limits : quiet.limits; }
    [[nodiscard]] double value() const { return middle(values()); }
    [[nodiscard]] bool is_met() const {
        return met(value(), first.bound, first.side) ||
               (first.limit_suffices && limit_misses() && met(value(), middle(limits()), first.side));
    }
    /// How far the value is on the right side of the bound: below 1 it is missed, unless the limit excuses it. Negative
    /// times are good.
    [[nodiscard]] double margin() const {
        return first.side == wanted::at_least ? value() / first.bound : 2 - value() / first.bound;
    }
    [[nodiscard]] bool limit_misses() const {
        return !limits().empty() && !met(middle(limits()), first.bound, first.side);
    }
    /// "8^4 1.05", "8^4 **1.25** (1.1–1.4)", "8^4 1.5, limit 1.4", "8^4 1.05 *n*" (noisy).
    [[nodiscard]] std::string cell() const {
        const std::string mark = is_met() ? "" : "**";
        std::string text = first.point + ' ' + mark + printed(value()) + mark;
        const auto [least, most] = std::ranges::minmax(values());
        if (printed(least) != printed(most)) text += " (" + printed(least) + "–" + printed(most) + ")";
        if (limit_misses()) text += ", limit " + printed(middle(limits()));
        return is_noisy() ? text + " *n*" : text;
    }
    [[nodiscard]] std::string json() const {
        const auto [least, most] = std::ranges::minmax(values());
        json_line line;
        line.add("bench", "targets").add("target", first.target).add("of", first.of).add("point", first.point);
        line.add("speed", first.speed).add("seen", value()).add("least", least).add("most", most);
        line.add("runs", static_cast<int>(values().size())).add("noisy", is_noisy());
        line.add("wanted", first.side == wanted::at_most ? "at most" : "at least").add("bound", first.bound);
        if (!limits().empty()) line.add("limit", middle(limits()));
        return line.add("met", is_met()).text();
    }
};

/// All runs together.
struct judgement {
    std::vector<pooled> figures;
    std::vector<compared_point> points; ///< what a point is compared with in any run
};

/// Runs of different code say nothing together.
class same_code {
  public:
    /// Err: input_error: a line says that it measured other code than an earlier one.
    void check(const run_lines& lines, const std::string& path) {
        for (const nlohmann::json& line : lines) {
            const std::string git = line.value("git", "unknown");
            if (git.empty() || git == "unknown") continue;
            if (git_.empty()) {
                git_ = git;
                path_ = path;
            }
            if (git != git_)
                throw input_error("'" + path_ + "' has measured code of git " + git_ + ", '" + path + "' of " + git +
                                  ": runs of different code are judged one by one");
        }
    }

  private:
    std::string git_, path_; // of the first line that says so
};

void pool(const figure& f, std::vector<pooled>& all) {
    const auto same = [&](const pooled& p) {
        return p.first.target == f.target && p.first.of == f.of && p.first.point == f.point &&
               p.first.speed == f.speed && p.first.bound == f.bound;
    };
    auto found = std::ranges::find_if(all, same);
    if (found == all.end()) found = all.insert(all.end(), {f, {}, {}});
    found->add(f);
}

void pool(const compared_point& c, std::vector<compared_point>& all) {
    const auto same = [&](const compared_point& p) { return p.of == c.of && p.point == c.point && p.speed == c.speed; };
    const auto found = std::ranges::find_if(all, same);
    if (found == all.end()) {
        all.push_back(c);
        return;
    }
    found->has_limit |= c.has_limit;
    found->has_mpi |= c.has_mpi;
}

/// Adds a run to all.  Err: input_error: a line of a bench lacks keys that its lines have; the run is of other code.
void add_run(const std::string& path, same_code& code, judgement& all) try {
    const run_lines lines = read_run(path);
    code.check(lines, path);
    for (const figure& f : figures_of(lines)) pool(f, all.figures);
    for (const compared_point& c : compared_points(lines)) pool(c, all.points);
} catch (const nlohmann::json::exception& e) {
    throw input_error("'" + path + "': a line is none of its bench: " + e.what());
}

judgement judge_runs(const std::vector<std::string>& paths) {
    judgement all;
    same_code code;
    for (const std::string& path : paths) add_run(path, code, all);
    std::ranges::stable_sort(all.points, {}, &compared_point::size);
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

/// "bare, cut in t, appended 4^4, 8^4; …" of the points that `lacks` selects.
template <class Lacks>
std::string list_of(const std::vector<compared_point>& points, Lacks lacks) {
    std::map<std::string, std::string> by_kind;
    for (const compared_point& p : points) {
        if (!lacks(p)) continue;
        std::string& text = by_kind[p.of + (p.speed.empty() ? "" : ", " + p.speed)];
        text += (text.empty() ? " " : ", ") + p.point;
    }
    std::string list;
    for (const auto& [kind, names] : by_kind) list += (list.empty() ? "" : "; ") + kind + names;
    return list;
}

/// What can't be judged, though ours was measured: nothing to compare with was seen in the same mode of the machine.
void print_missing(const std::vector<compared_point>& points) {
    const auto no_limit = [](const compared_point& p) { return !p.has_limit; };
    const auto no_mpi = [](const compared_point& p) { return !p.has_mpi; };
    const auto print = [&](const char* what, auto lacks) {
        const auto count = static_cast<std::size_t>(std::ranges::count_if(points, lacks));
        if (count == 0) return;
        std::printf("no %s: %s\n", what, count == points.size() ? "at any of them" : list_of(points, lacks).c_str());
    };
    if (points.empty()) return;
    const auto incomplete = std::ranges::count_if(points, [](const auto& p) { return !p.has_limit || !p.has_mpi; });
    std::printf(
        "\n%td of %zu points of exchanges lack figures, because a contender was not seen there in the same mode "
        "as ours\n",
        incomplete, points.size());
    print("one-copy limit", no_limit);
    print("MPI", no_mpi);
}

int judge(app::program& program, int argc, const char* const* argv) {
    std::vector<std::string> runs;
    std::string json;
    CLI::App cli("Are the targets met?");
    cli.add_option("runs", runs, "files of JSON lines, one per run")->required();
    cli.add_option("--json", json, "file of JSON lines, one per figure")->check(not_empty);
    program.parse(cli, argc, argv);
    const judgement all = judge_runs(runs);
    output_file json_file("--json", json);
    print_tables(all.figures);
    print_missing(all.points);
    if (std::FILE* const to = json_file.stream())
        for (const pooled& p : all.figures) std::fprintf(to, "%s\n", p.json().c_str());
    json_file.close(program);
    return 0;
}

} // namespace

int main(int argc, char** argv) { return run_bench(argc, argv, judge); }
