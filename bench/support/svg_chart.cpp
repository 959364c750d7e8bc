// SPDX-License-Identifier: Apache-2.0
#include "support/svg_chart.hpp"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace halocline::bench {
namespace {

constexpr int panel_width = 380, panel_height = 300, left = 56, top = 60, gap = 40, bottom = 64, legend_row = 18;
constexpr std::size_t most_legend_columns = 4, colours = 8; // .l0 to .l7

constexpr const char* style = R"(<style>
text { font: 11px sans-serif; fill: #222 } .title { font-size: 14px; font-weight: bold } .grid { stroke: #ddd }
.l0 { stroke: #0072b2 } .l1 { stroke: #d55e00 } .l2 { stroke: #009e73 } .l3 { stroke: #cc79a7 } .l4 { stroke: #e69f00 } .l5 { stroke: #56b4e9 } .l6 { stroke: #777 } .l7 { stroke: #a6761d }
polyline, circle { fill: none; stroke-width: 1.8 } .back { fill: #fff }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .grid { stroke: #444 } .back { fill: #16181c } }
</style>
)";

class svg_text {
  public:
    __attribute__((format(printf, 2, 3))) void add(const char* format, ...) {
        char line[512];
        va_list values;
        va_start(values, format);
        std::vsnprintf(line, sizeof line, format, values);
        va_end(values);
        text_ += line;
    }
    void add_text(double x, double y, const char* attributes, const std::string& words) {
        std::string escaped;
        for (const char c : words) escaped += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
        add("<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
        text_ += escaped + "</text>\n";
    }
    void add_plain(const std::string& text) { text_ += text; }
    std::string take() { return std::move(text_); }

  private:
    std::string text_;
};

/// Covers whole decades, from 10^low to 10^high, upwards.
struct log_axis {
    double low, high;
    [[nodiscard]] double y_of(double v) const { return top + panel_height * (high - std::log10(v)) / (high - low); }
};

log_axis axis_for(const std::vector<chart_panel>& panels) {
    double least = HUGE_VAL, most = 0;
    for (const chart_panel& p : panels)
        for (const chart_panel::line& l : p.lines)
            for (const double v : l.values)
                if (v > 0) least = std::min(least, v), most = std::max(most, v);
    if (most == 0) least = most = 1;
    const double low = std::floor(std::log10(least));
    return {low, std::max(low + 1, std::ceil(std::log10(most)))};
}

/// Names of all lines, each once; a line's index among them is its colour.
std::vector<std::string> names_in(const std::vector<chart_panel>& panels) {
    std::vector<std::string> names;
    for (const chart_panel& p : panels)
        for (const chart_panel::line& l : p.lines)
            if (std::find(names.begin(), names.end(), l.name) == names.end()) names.push_back(l.name);
    return names;
}
int colour_of(std::size_t name) { return static_cast<int>(name % colours); }
/// Further turns through the colours are dashed, the third one with dots.
const char* dashes_of(std::size_t name) {
    return name < colours ? "" : name < 2 * colours ? " stroke-dasharray=\"7 3\"" : " stroke-dasharray=\"2 3\"";
}

void add_grid(svg_text& svg, double x0, const log_axis& axis) {
    for (double decade = axis.low; decade <= axis.high; ++decade) {
        const double v = std::pow(10, decade);
        svg.add("<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", x0, x0 + panel_width,
                axis.y_of(v), axis.y_of(v));
        char label[32];
        std::snprintf(label, sizeof label, "%g", v);
        svg.add_text(x0 - 4, axis.y_of(v) + 4, "text-anchor=\"end\"", label);
    }
}

void add_panel(svg_text& svg, const chart_panel& p, double x0, const log_axis& axis,
               const std::vector<std::string>& names) {
    svg.add_text(x0 + 60, top - 8, "", p.title);
    add_grid(svg, x0, axis);
    const double step = panel_width / static_cast<double>(std::max<std::size_t>(p.categories.size(), 1));
    const auto x_of = [&](std::size_t c) { return x0 + step * (static_cast<double>(c) + 0.5); };
    for (std::size_t c = 0; c < p.categories.size(); ++c) {
        char turned[96];
        std::snprintf(turned, sizeof turned, "text-anchor=\"end\" transform=\"rotate(-35 %.1f %d)\"", x_of(c),
                      top + panel_height + 16);
        svg.add_text(x_of(c), top + panel_height + 16, turned, p.categories[c]);
    }
    for (const chart_panel::line& l : p.lines) {
        const auto name = static_cast<std::size_t>(std::find(names.begin(), names.end(), l.name) - names.begin());
        const int colour = colour_of(name);
        std::string points;
        for (std::size_t c = 0; c < l.values.size(); ++c) {
            if (l.values[c] <= 0) continue;
            char xy[48];
            std::snprintf(xy, sizeof xy, "%.1f,%.1f ", x_of(c), axis.y_of(l.values[c]));
            points += xy;
            svg.add("<circle class=\"l%d\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>\n", colour, x_of(c),
                    axis.y_of(l.values[c]));
        }
        svg.add("<polyline class=\"l%d\"%s points=\"", colour, dashes_of(name));
        svg.add_plain(points + "\"/>\n"); // of any length
    }
}

/// The legend has as many columns as have room for the longest name.
std::size_t legend_columns(const std::vector<std::string>& names, int width) {
    constexpr std::size_t line_width = 34, letter_width = 6;
    std::size_t longest = 0;
    for (const std::string& name : names) longest = std::max(longest, name.size());
    const std::size_t room = static_cast<std::size_t>(width - left) / (line_width + letter_width * longest);
    return std::clamp<std::size_t>(room, 1, most_legend_columns);
}

void add_legend(svg_text& svg, const std::vector<std::string>& names, int width) {
    const std::size_t columns = legend_columns(names, width);
    for (std::size_t n = 0; n < names.size(); ++n) {
        const double share = static_cast<double>(width - left) / static_cast<double>(columns);
        const double x = left + static_cast<double>(n % columns) * share;
        const std::size_t row = n / columns;
        const double y = top + panel_height + bottom + legend_row * static_cast<double>(row);
        svg.add("<line class=\"l%d\" stroke-width=\"2\"%s x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n",
                colour_of(n), dashes_of(n), x, x + 18, y - 4, y - 4);
        svg.add_text(x + 24, y, "", names[n]);
    }
}

} // namespace

std::string svg_chart(const std::string& title, const std::string& y_label, const std::vector<chart_panel>& panels) {
    const std::vector<std::string> names = names_in(panels);
    const log_axis axis = axis_for(panels);
    const int width = left + static_cast<int>(panels.size()) * (panel_width + gap);
    const std::size_t columns = legend_columns(names, width);
    const int legend_rows = static_cast<int>((names.size() + columns - 1) / columns);
    const int height = top + panel_height + bottom + legend_row * legend_rows;

    svg_text svg;
    svg.add("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\">\n", width, height);
    svg.add_plain(style);
    svg.add("<rect class=\"back\" width=\"%d\" height=\"%d\"/>\n", width, height);
    svg.add_text(left, 22, "class=\"title\"", title);
    svg.add_text(8, 40, "", y_label);
    for (std::size_t i = 0; i < panels.size(); ++i)
        add_panel(svg, panels[i], left + static_cast<double>(i) * (panel_width + gap), axis, names);
    add_legend(svg, names, width);
    svg.add("</svg>\n");
    return svg.take();
}

} // namespace halocline::bench
