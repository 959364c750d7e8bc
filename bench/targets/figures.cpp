// SPDX-License-Identifier: Apache-2.0
#include "targets/figures.hpp"

#include <cstdio>
#include <cstdlib>

namespace halocline::bench {

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

std::vector<figure> figures_of(const run_lines& lines) {
    std::vector<figure> all;
    add_message_figures(lines, all);
    add_exchange_figures(lines, all);
    add_setup_figures(lines, all);
    return all;
}

} // namespace halocline::bench
