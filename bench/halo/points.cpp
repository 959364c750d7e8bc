// SPDX-License-Identifier: Apache-2.0
#include "halo/points.hpp"

#include <halocline/base/error.hpp>

#include <algorithm>
#include <charconv>

namespace halocline::bench {
namespace {

coordinate extents_in(const std::string& text) {
    coordinate extents{};
    const char* const end = text.data() + text.size();
    if (const auto four = lattice::parse_coordinate(text))
        extents = *four;
    else if (int all = 0; std::from_chars(text.data(), end, all).ptr == end)
        extents.fill(all);
    if (*std::min_element(extents.begin(), extents.end()) < 2)
        throw input_error("--L " + text + ": expected extents from 2 on, such as 8 or 24.12.12.12");
    return extents;
}

bool is_padded(const std::string& layout) {
    if (layout != "appended" && layout != "padded") throw input_error("--layout " + layout + ": appended or padded");
    return layout == "padded";
}

void cut(point& p, const std::string& dimensions, int ranks) {
    const auto refuse = [&](const std::string& why) { throw input_error("--cut '" + dimensions + "': " + why); };
    if (dimensions.empty()) refuse("expected dimensions, such as t or xt");
    int left = ranks;
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
        const auto mu = std::string("xyzt").find(dimensions[i]);
        if (mu == std::string::npos) refuse("dimensions are x, y, z, t");
        if (dimensions.find(dimensions[i]) != i) refuse("a dimension is cut once");
        p.self[mu] = ranks == 1;
        if (ranks == 1) continue;
        p.grid[mu] = i + 1 == dimensions.size() ? left : 2;
        if (left % p.grid[mu] != 0 || left < 2) refuse(std::to_string(ranks) + " ranks can't be cut so");
        left /= p.grid[mu];
    }
}

void add_points(std::vector<point>& points, const point_choice& choice, const std::vector<std::string>& extents,
                int bytes, int ranks) {
    if (bytes < 8 || bytes % 8 != 0)
        throw input_error("--bytes " + std::to_string(bytes) + ": must be a multiple of 8");
    for (const std::string& layout : choice.layouts)
        for (const std::string& dimensions : choice.cuts)
            for (const std::string& text : extents) {
                point p{.extents = extents_in(text), .bytes_per_site = bytes, .padded = is_padded(layout)};
                cut(p, dimensions, ranks);
                if (std::ranges::find(points, p) != points.end())
                    throw input_error("a point is named twice by --L, --bytes, --vectors, --cut and --layout: " +
                                      lattice::to_string(p.extents) + ", " + std::to_string(bytes) +
                                      " B/site, cut in " + p.cut_name() + ", " + p.layout());
                points.push_back(p);
            }
}

} // namespace

std::vector<point> points_of(const point_choice& choice, int ranks) {
    std::vector<point> points;
    const bool none_named = choice.bytes.empty() && choice.vectors.empty();
    for (const int bytes : none_named ? std::vector{96, 192} : choice.bytes)
        add_points(points, choice, choice.extents, bytes, ranks);
    for (const int n : choice.vectors) {
        if (n < 1) throw input_error("--vectors " + std::to_string(n) + ": must be 1 or more");
        add_points(points, choice, {"2", "4"}, 24 * n, ranks);
    }
    return points;
}

} // namespace halocline::bench
