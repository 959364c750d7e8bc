// SPDX-License-Identifier: Apache-2.0
// A picture of a bench: panels side by side, categories along x, a logarithmic y axis, a line per series. Colours
// follow the reader's light or dark mode.
#pragma once

#include <string>
#include <vector>

namespace halocline::bench {

struct chart_panel {
    struct line {
        std::string name;           ///< a line keeps its colour in all panels
        std::vector<double> values; ///< by category; values that are not positive are left out
    };
    std::string title;
    std::vector<std::string> categories;
    std::vector<line> lines;
};

/// The text of an SVG file.
std::string svg_chart(const std::string& title, const std::string& y_label, const std::vector<chart_panel>& panels);

} // namespace halocline::bench
