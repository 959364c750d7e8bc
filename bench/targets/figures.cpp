// SPDX-License-Identifier: Apache-2.0
#include "targets/figures.hpp"

#include "support/statistics.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

namespace halocline::bench {
namespace {

/// The contenders alternate: each line of `below` is compared with the line of `above` before it.
reading paired_ratio(const target& t, const line_list& lines) {
    std::vector<double> ratios;
    reading above;
    for (const nlohmann::json* line : lines) {
        if (const reading found = t.above.in({line})) above = found;
        const reading below = t.below.in({line});
        if (above && below) ratios.push_back(above.value / below.value);
    }
    return ratios.empty() ? reading{} : reading{above.line, median(ratios)};
}

double related(const target& t, double above, double below) {
    switch (t.form) {
    case target::number: return t.scale * above;
    case target::difference: return t.scale * (above - below);
    default: return above / below;
    }
}

/// "raw slot", "ours": who has no number; "": nobody.
std::string missing(const target& t, const reading& above, const reading& below) {
    const bool needs_below = t.form != target::number;
    if (!above && !(needs_below && below)) return no_line;
    if (!above) return t.above.who;
    return needs_below && !below ? t.below.who : "";
}

figure figure_at(const target& t, const place& p) {
    const reading above = t.above.in(p.lines), below = t.below.in(p.lines);
    const bool ours_is_above = t.above.who == ours_name;
    figure f{.target = t.name,
             .of = t.of,
             .point = p.point,
             .size = p.size,
             .speed = p.speed,
             .side = t.side,
             .bound = t.bound(p, (ours_is_above ? above : below).line),
             .lacks = p.left_out.empty() ? missing(t, above, below) : p.left_out,
             .limit_suffices = t.limit_suffices,
             .in_short = t.in_short ? t.in_short(p) : ""};
    if (!f.lacks.empty()) return f;
    f.noisy = above.noisy() || (below && below.noisy());
    if (t.form == target::paired) {
        const reading pairs = paired_ratio(t, p.lines);
        if (!pairs) f.lacks = t.above.who + " before " + t.below.who;
        f.value = pairs.value;
        return f;
    }
    f.value = related(t, above.value, below.value);
    // What the limit reaches does not excuse ours if only the limit was disturbed.
    if (const reading limit = t.limit.in(p.lines); limit && (f.noisy || !limit.noisy()))
        f.limit = ours_is_above ? related(t, limit.value, below.value) : related(t, above.value, limit.value);
    return f;
}

} // namespace

reading term::in(const line_list& lines) const {
    reading found;
    std::vector<double> values;
    for (const nlohmann::json* line : lines) {
        if (!is || !line->contains(key) || !is(*line)) continue;
        values.push_back(line->at(key).get<double>());
        if (!found || (!median && values.back() < found.value)) found = {line, values.back()};
    }
    if (median && found) found.value = bench::median(values);
    return found;
}

void judge(const target& t, const std::vector<place>& places, std::vector<figure>& all) {
    std::set<std::string> seen;
    const auto add_if = [&](auto&& wanted_here, const place& p) {
        if (t.applies && !t.applies(p)) return;
        const figure f = figure_at(t, p);
        if (!wanted_here(f)) return;
        seen.insert(p.point);
        all.push_back(f);
    };
    for (const place& p : places) add_if([](const figure& f) { return f.lacks != no_line; }, p);
    for (const place& p : t.points) add_if([&](const figure& f) { return !seen.contains(f.point); }, p);
}

std::string printed(double value) {
    const double size = value < 0 ? -value : value;
    char text[32];
    std::snprintf(text, sizeof text, "%.*f", size < 10 ? 2 : size < 100 ? 1 : 0, value);
    return text;
}

bool met(double value, double bound, wanted side) {
    const double shown = std::strtod(printed(value).c_str(), nullptr);
    return side == wanted::at_most ? shown <= bound : shown >= bound;
}

line_list lines_of(const run_lines& lines, std::string_view bench) {
    line_list found;
    for (const nlohmann::json& line : lines)
        if (line.value("bench", "") == bench) found.push_back(&line);
    return found;
}

bool is_within_host(const nlohmann::json& line) {
    const std::string over =
        line.value("who", ours_name) == ours_name ? line.value("transport", "shm") : line.value("beside", "shm");
    return over == "shm" || over == "self";
}

std::vector<figure> figures_of(const run_lines& lines) {
    std::vector<figure> all;
    add_message_figures(lines, all);
    add_exchange_figures(lines, all);
    add_setup_figures(lines, all);
    return all;
}

} // namespace halocline::bench
