// SPDX-License-Identifier: Apache-2.0
// Are the targets met?  scripts/bench.sh targets  (bench_targets RUN…)
//
// RUN is a file of JSON lines that other benches wrote in one go. Ratios are taken within a run; over several runs a
// figure is the median, with its range; runs of different code are refused, and so are runs without any figure. Prints
// three tables in Markdown: how many times as long others take, for README.md and docs/status.md; one row per target
// with its worst figure, and all figures, for docs/measurements/; then what was not measured, and why. --json FILE gets
// one line per figure, and one of "bench":"targets_missing" per point without any.
#include "support/command_line.hpp"
#include "support/json_line.hpp"
#include "support/output_file.hpp"
#include "support/statistics.hpp"
#include "targets/figures.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace {

using namespace halocline;
using namespace halocline::bench;

/// Err: input_error: no such file, no line in it, or a line that is not JSON.
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
    if (lines.empty()) throw input_error("'" + path + "' has no lines: nothing was measured");
    return lines;
}

/// As the tables call it: near and far for the modes "fast" and "slow" of lines of JSON, alone for their "bare".
std::string shown(std::string text) {
    for (const auto& [key, word] :
         {std::pair<std::string, std::string>{"fast", "near"}, {"slow", "far"}, {"bare", "alone"}})
        if (const std::size_t at = text.find(key); at != std::string::npos) text.replace(at, key.size(), word);
    return text;
}

/// missed_by_limit: the limit misses the bound, too, and ours is no worse: so the target asks for no more.
enum class verdict { missed, missed_by_limit, met };

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
    [[nodiscard]] double value() const { return median(values()); }
    [[nodiscard]] verdict judged() const {
        if (met(value(), first.bound, first.side)) return verdict::met;
        const bool no_better = first.limit_suffices && limit_misses() && met(value(), median(limits()), first.side);
        return no_better ? verdict::missed_by_limit : verdict::missed;
    }
    /// How far the value is on the right side of the bound: below 1 it is missed. Negative times are good.
    [[nodiscard]] double margin() const {
        return first.side == wanted::at_least ? value() / first.bound : 2 - value() / first.bound;
    }
    /// Of a ratio to another: the other's time / ours.
    [[nodiscard]] double gain() const { return first.side == wanted::at_least ? value() : 1 / value(); }
    [[nodiscard]] bool limit_misses() const {
        return !limits().empty() && !met(median(limits()), first.bound, first.side);
    }
    /// "8^4 1.05", "8^4 **1.25** (1.1–1.4)", "8^4 _1.5_, limit 1.4", "8^4 1.05 *n*" (noisy).
    [[nodiscard]] std::string cell() const {
        const std::string mark = judged() == verdict::met ? "" : judged() == verdict::missed ? "**" : "_";
        std::string text = first.point + ' ' + mark + printed(value()) + mark;
        const auto [least, most] = std::ranges::minmax(values());
        if (printed(least) != printed(most)) text += " (" + printed(least) + "–" + printed(most) + ")";
        if (limit_misses()) text += ", limit " + printed(median(limits()));
        return is_noisy() ? text + " *n*" : text;
    }
    [[nodiscard]] std::string json() const {
        const auto [least, most] = std::ranges::minmax(values());
        json_line line;
        line.add("bench", "targets").add("target", first.target).add("of", first.of).add("point", first.point);
        line.add("speed", first.speed).add("seen", value()).add("least", least).add("most", most);
        line.add("runs", static_cast<int>(values().size())).add("noisy", is_noisy());
        line.add("wanted", first.side == wanted::at_most ? "at most" : "at least").add("bound", first.bound);
        if (!limits().empty()) line.add("limit", median(limits()));
        if (first.limit_suffices) line.add("limit_misses_too", judged() == verdict::missed_by_limit);
        return line.add("met", judged() == verdict::met).text();
    }
};

/// What no run has a figure of.
struct gap {
    figure where;                ///< the first
    std::set<std::string> lacks; ///< in any run: "raw slot", "MPI near"
};

/// All runs together.
struct judgement {
    std::vector<pooled> figures;
    std::vector<gap> not_measured; ///< points without a figure in any mode of the machine
    std::vector<gap> one_mode;     ///< points that have one, but only in the other mode
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

bool is_of(const figure& a, const figure& b) { return a.target == b.target && a.of == b.of && a.point == b.point; }

void add_gap(const figure& f, std::vector<gap>& to, bool by_speed) {
    const auto same = [&](const gap& g) { return is_of(g.where, f) && (!by_speed || g.where.speed == f.speed); };
    auto found = std::ranges::find_if(to, same);
    if (found == to.end()) found = to.insert(to.end(), {f, {}});
    found->lacks.insert(f.lacks + (f.speed.empty() ? "" : " " + shown(f.speed)));
}

/// Adds those of `lacking` that no figure of any run makes up for.
void add_gaps(const std::vector<figure>& lacking, judgement& all) {
    for (const figure& f : lacking) {
        bool judged = false, in_this_mode = false;
        for (const pooled& p : all.figures) {
            judged = judged || is_of(p.first, f);
            in_this_mode = in_this_mode || (is_of(p.first, f) && (f.speed.empty() || p.first.speed == f.speed));
        }
        if (!judged) add_gap(f, all.not_measured, false);
        if (judged && !in_this_mode) add_gap(f, all.one_mode, true);
    }
}

/// Adds a run to all, and to `lacking` its figures without a value.  Err: input_error: a line of a bench lacks keys that
/// its lines have; the run is of other code.
void add_run(const std::string& path, same_code& code, judgement& all, std::vector<figure>& lacking) try {
    const run_lines lines = read_run(path);
    code.check(lines, path);
    for (const figure& f : figures_of(lines)) {
        if (f.lacks.empty())
            pool(f, all.figures);
        else
            lacking.push_back(f);
    }
} catch (const nlohmann::json::exception& e) {
    throw input_error("'" + path + "': a line is none of its bench: " + e.what());
}

/// Err: input_error: as for add_run(), or there is no figure in any run.
judgement judge_runs(const std::vector<std::string>& paths) {
    judgement all;
    same_code code;
    std::vector<figure> lacking;
    for (const std::string& path : paths) add_run(path, code, all, lacking);
    if (all.figures.empty()) throw input_error("'" + paths[0] + "': no line says anything about a target");
    add_gaps(lacking, all);
    return all;
}

/// A row: all points of one target and kind of exchange, the small ones first.
struct row {
    std::string target, of;
    wanted side;
    std::map<std::string, std::vector<const pooled*>> figures{}; // by speed
    std::vector<const gap*> not_measured{};

    [[nodiscard]] std::string cell(const std::string& speed) {
        std::vector<const pooled*>& points = figures[speed];
        std::ranges::stable_sort(points, {}, [](const pooled* p) { return p->first.size; });
        std::string text;
        for (const pooled* p : points) text += (text.empty() ? "" : "; ") + p->cell();
        return text.empty() ? "–" : text;
    }
    [[nodiscard]] std::vector<const pooled*> all_figures() const {
        std::vector<const pooled*> all;
        for (const auto& [speed, of_speed] : figures) all.insert(all.end(), of_speed.begin(), of_speed.end());
        return all;
    }
    /// "1.20", "0.60 to 1.00": of the figures, or of what they would be compared with.
    [[nodiscard]] std::string bounds() const {
        std::vector<double> all;
        for (const pooled* p : all_figures()) all.push_back(p->first.bound);
        if (all.empty())
            for (const gap* g : not_measured) all.push_back(g->where.bound);
        const auto [least, most] = std::ranges::minmax(all);
        return printed(least) + (printed(least) == printed(most) ? "" : " to " + printed(most));
    }
};

std::vector<row> rows_of(const judgement& all) {
    std::vector<row> rows;
    const auto row_of = [&](const figure& f) -> row& {
        auto r = std::ranges::find_if(rows, [&](const row& o) { return o.target == f.target && o.of == f.of; });
        if (r == rows.end()) r = rows.insert(rows.end(), {f.target, f.of, f.side});
        return *r;
    };
    for (const pooled& p : all.figures) row_of(p.first).figures[p.first.speed].push_back(&p);
    for (const gap& g : all.not_measured) row_of(g.where).not_measured.push_back(&g);
    // The rows of a target are kept together.
    std::vector<row> ordered;
    for (const row& r : rows)
        if (std::ranges::none_of(ordered, [&](const row& o) { return o.target == r.target; }))
            std::ranges::copy_if(rows, std::back_inserter(ordered), [&](const row& o) { return o.target == r.target; });
    return ordered;
}

std::string name_of(const row& r) { return r.target + (r.side == wanted::at_most ? " ≤ " : " ≥ ") + r.bounds(); }

/// "**5 of 7**, 1 as the limit, 2 not measured"
std::string count_of(const row& r) {
    const std::vector<const pooled*> points = r.all_figures();
    if (points.empty()) return "not measured";
    const auto count = [&](verdict v) { return std::ranges::count(points, v, &pooled::judged); };
    const auto excused = count(verdict::missed_by_limit);
    const std::string mark = count(verdict::missed) == 0 ? "" : "**";
    const std::size_t missing = r.not_measured.size();
    return mark + std::to_string(count(verdict::met)) + " of " + std::to_string(points.size()) + mark +
           (excused == 0 ? "" : ", " + std::to_string(excused) + " as the limit") +
           (missing == 0 ? "" : ", " + std::to_string(missing) + " not measured");
}

/// The worst figure, a missed one if there is any.
std::string worst_of(const row& r) {
    const std::vector<const pooled*> points = r.all_figures();
    if (points.empty()) return "–";
    const pooled* const worst =
        *std::ranges::min_element(points, {}, [](const pooled* p) { return std::pair(p->judged(), p->margin()); });
    return shown(worst->first.speed) + (worst->first.speed.empty() ? "" : " ") + worst->cell();
}

/// What others take: of each row the median over all its kinds, sizes and places of the cores, and the worst.
void print_in_short(const judgement& all) {
    std::vector<std::pair<std::string, std::vector<const pooled*>>> rows;
    for (const pooled& p : all.figures) {
        if (p.first.in_short.empty()) continue;
        auto found = std::ranges::find(rows, p.first.in_short, [](const auto& r) { return r.first; });
        if (found == rows.end()) found = rows.insert(rows.end(), {p.first.in_short, {}});
        found->second.push_back(&p);
    }
    if (rows.empty()) return;
    std::puts("| their time / ours | median | worst | where |\n|---|---|---|---|");
    for (const auto& [name, figures] : rows) {
        std::vector<double> gains;
        for (const pooled* p : figures) gains.push_back(p->gain());
        const pooled* const worst = *std::ranges::min_element(figures, {}, &pooled::gain);
        std::string where = worst->first.point + ", " + shown(worst->first.of);
        if (!worst->first.speed.empty()) where += ", " + shown(worst->first.speed);
        std::printf("| %s | %s | %s | %s%s |\n", name.c_str(), printed(median(gains)).c_str(),
                    printed(worst->gain()).c_str(), where.c_str(), worst->is_noisy() ? " *n*" : "");
    }
    std::puts("");
}

/// A row per target: how many of its figures meet it, at how many points there is none, and the worst figure.
void print_summary(const std::vector<row>& rows) {
    std::puts("| target | of | met | worst |\n|---|---|---|---|");
    for (const row& r : rows)
        std::printf("| %s | %s | %s | %s |\n", name_of(r).c_str(), shown(r.of).c_str(), count_of(r).c_str(),
                    worst_of(r).c_str());
}

void print_figures(std::vector<row> rows) {
    std::puts("| target | of | near | far | either |\n|---|---|---|---|---|");
    for (row& r : rows)
        if (!r.all_figures().empty())
            std::printf("| %s | %s | %s | %s | %s |\n", name_of(r).c_str(), shown(r.of).c_str(), r.cell("fast").c_str(),
                        r.cell("slow").c_str(), r.cell("").c_str());
}

/// "no MPI near, no ours far"
std::string reason_of(const gap& g) {
    std::string reason;
    for (const std::string& what : g.lacks)
        if (what != no_line || g.lacks.size() == 1) reason += (reason.empty() ? "no " : ", no ") + what;
    return reason;
}

/// "4^4, 8^4 (no MPI near); 16^4 (no time)"
std::string list_of(std::vector<const gap*> gaps) {
    std::ranges::stable_sort(gaps, {}, [](const gap* g) { return g->where.size; });
    std::vector<std::pair<std::string, std::string>> by_reason;
    for (const gap* g : gaps) {
        const std::string reason = reason_of(*g);
        auto found = std::ranges::find(by_reason, reason, &std::pair<std::string, std::string>::first);
        if (found == by_reason.end()) found = by_reason.insert(by_reason.end(), {reason, ""});
        found->second += (found->second.empty() ? "" : ", ") + g->where.point;
    }
    std::string text;
    for (const auto& [reason, points] : by_reason) text += (text.empty() ? "" : "; ") + points + " (" + reason + ")";
    return text;
}

/// A point for each target that it is judged by: how many are judged, and which are not, and why.
void print_missing(const judgement& all, const std::vector<row>& rows) {
    std::size_t judged = 0;
    for (std::size_t i = 0; i < all.figures.size(); ++i) {
        const auto same = [&](const pooled& p) { return is_of(p.first, all.figures[i].first); };
        judged += std::none_of(all.figures.begin(), all.figures.begin() + static_cast<std::ptrdiff_t>(i), same);
    }
    const std::size_t missing = all.not_measured.size();
    std::printf("\njudged %zu of %zu points of targets%s\n", judged, judged + missing,
                missing == 0 ? "" : "; not measured, besides rows without any line:");
    const auto without_line = [](const gap* g) { return g->lacks == std::set<std::string>{no_line}; };
    for (const row& r : rows) {
        const bool row_says_it = r.all_figures().empty() && std::ranges::all_of(r.not_measured, without_line);
        if (!row_says_it && !r.not_measured.empty())
            std::printf("* %s, %s: %s\n", r.target.c_str(), shown(r.of).c_str(), list_of(r.not_measured).c_str());
    }
    if (all.one_mode.empty()) return;
    std::puts("judged only with the cores in the other place:");
    for (const row& r : rows) {
        std::vector<const gap*> of_row;
        for (const gap& g : all.one_mode)
            if (g.where.target == r.target && g.where.of == r.of) of_row.push_back(&g);
        if (!of_row.empty())
            std::printf("* %s, %s: %s\n", r.target.c_str(), shown(r.of).c_str(), list_of(of_row).c_str());
    }
}

void print_tables(const judgement& all) {
    const std::vector<row> rows = rows_of(all);
    print_in_short(all);
    print_summary(rows);
    std::puts("");
    print_figures(rows);
    const auto count = [&](verdict v) { return std::ranges::count(all.figures, v, &pooled::judged); };
    std::printf("\n%zu figures: %td met, %td missed (bold), %td missed by the one-copy limit as well, and ours is no "
                "worse,\n"
                "which is what their targets ask for then (italic); in brackets the range over runs; limit: the "
                "one-copy limit's\n"
                "own figure where it misses the bound, too; n: noisy. step: the source written, the exchange, the "
                "ghosts read;\n"
                "alone: of that the exchange. short runs: faces that the one-copy limit copies 16 bytes at a "
                "time (x is cut)\n",
                all.figures.size(), count(verdict::met), count(verdict::missed), count(verdict::missed_by_limit));
    print_missing(all, rows);
}

void write_json(const judgement& all, std::FILE* to) {
    for (const pooled& p : all.figures) std::fprintf(to, "%s\n", p.json().c_str());
    for (const gap& g : all.not_measured) {
        json_line line;
        line.add("bench", "targets_missing").add("target", g.where.target).add("of", g.where.of);
        line.add("point", g.where.point).add("lacks", reason_of(g));
        std::fprintf(to, "%s\n", line.text().c_str());
    }
}

int run(app::program& program, int argc, const char* const* argv) {
    std::vector<std::string> runs;
    std::string json;
    CLI::App cli("Are the targets met?");
    cli.add_option("runs", runs, "files of JSON lines, one per run")->required();
    cli.add_option("--json", json, "file of JSON lines, one per figure")->check(not_empty);
    program.parse(cli, argc, argv);
    const judgement all = judge_runs(runs);
    output_file json_file("--json", json);
    print_tables(all);
    if (std::FILE* const to = json_file.stream()) write_json(all, to);
    json_file.close(program);
    return 0;
}

} // namespace

int main(int argc, char** argv) { return run_bench(argc, argv, run); }
