// SPDX-License-Identifier: Apache-2.0
#include <halocline/lattice/geometry.hpp>

#include <charconv>

namespace halocline::lattice {

std::string to_string(const coordinate& c) {
    std::string text;
    for (int mu = 0; mu < dimensions; ++mu) text += (mu ? "." : "") + std::to_string(c[mu]);
    return text;
}

std::string to_string(face f) { return std::string(1, dimension_name[f.mu]) + (f.end == side::low ? "-low" : "-high"); }

std::optional<coordinate> parse_coordinate(std::string_view text) {
    coordinate c{};
    char separator = '\0';
    for (int mu = 0; mu < dimensions; ++mu) {
        if (mu > 0) {
            if (text.empty()) return std::nullopt;
            if (mu == 1) separator = text.front();
            if (text.front() != separator || std::string_view(".x,").find(separator) == std::string_view::npos)
                return std::nullopt;
            text.remove_prefix(1);
        }
        if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
        const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), c[mu]);
        if (code != std::errc{}) return std::nullopt;
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    }
    if (!text.empty()) return std::nullopt;
    return c;
}

} // namespace halocline::lattice
