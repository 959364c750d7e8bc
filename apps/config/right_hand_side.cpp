// SPDX-License-Identifier: Apache-2.0
#include <halocline_app/right_hand_side.hpp>
#include <halocline_app/value_text.hpp>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace halocline::app {
namespace {

const std::string file = "file:", point = "point:", random_one = "random:";
constexpr std::uint32_t most_random = 1'000'000;

const std::vector<choice<source>>& made_here() {
    static const std::vector<choice<source>> names{
        {"ones", source::ones}, {"unit", source::unit}, {"random", source::random}};
    return names;
}

[[noreturn]] void expected_a_name() {
    expected(
        "ones, unit or random, or file:PATH, like file:source.lime, or point:x.y.z.t:spin.colour, or point:x.y.z.t "
        "for all twelve, or random:N; several are separated by commas");
}

bool begins_a_name(const std::string& text) {
    return text.starts_with(file) || text.starts_with(point) || text.starts_with(random_one) ||
           std::ranges::any_of(made_here(), [&](const auto& made) { return text == made.name; });
}

/// The names in a list; what follows a comma belongs to the name of a file unless it begins a name.
std::vector<std::string> split(const std::string& text) {
    std::vector<std::string> names;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const std::string item = text.substr(begin, end - begin);
        const std::string name = item.substr(std::min(item.find_first_not_of(' '), item.size()));
        if (begins_a_name(name) || names.empty() || !names.back().starts_with(file))
            names.push_back(name);
        else
            names.back() += ',' + item;
        begin = end + 1;
    }
    return names;
}

/// "s.c", as spin and colour.
std::optional<std::pair<int, int>> spin_and_colour(const std::string& text) {
    if (text.size() != 3 || text[1] != '.') return std::nullopt;
    const int spin = text[0] - '0', colour = text[2] - '0';
    if (spin < 0 || spin >= spins || colour < 0 || colour >= colours) return std::nullopt;
    return std::pair(spin, colour);
}

/// What follows "point:": one source, or the twelve of a site.
std::vector<right_hand_side> read_points(const std::string& text) {
    const std::size_t colon = text.find(':');
    const auto site = lattice::parse_coordinate(text.substr(0, colon));
    if (!site || std::ranges::any_of(*site, [](int x) { return x < 0; }))
        expected("four whole numbers >= 0, with points between them, in the order x, y, z, t, like point:0.0.0.0");
    const auto at = [&](int spin, int colour) {
        return right_hand_side{.kind = source::point, .site = *site, .spin = spin, .colour = colour};
    };
    if (colon != std::string::npos) {
        const auto one = spin_and_colour(text.substr(colon + 1));
        if (!one) expected("a spin from 0 to 3 and a colour from 0 to 2 behind the site, like point:0.0.0.0:3.2");
        return {at(one->first, one->second)};
    }
    std::vector<right_hand_side> all;
    for (int spin = 0; spin < spins; ++spin)
        for (int colour = 0; colour < colours; ++colour) all.push_back(at(spin, colour));
    return all;
}

std::vector<right_hand_side> read_name(const std::string& name) {
    if (name.starts_with(file) && name.size() > file.size())
        return {{.kind = source::file, .path = name.substr(file.size())}};
    if (name.starts_with(random_one))
        return {{.kind = source::random,
                 .number = read_integer<std::uint32_t>(name.substr(random_one.size()), 0, most_random)}};
    if (name.starts_with(point)) return read_points(name.substr(point.size()));
    for (const auto& made : made_here())
        if (made.name == name) return {{.kind = made.value}};
    expected_a_name();
}

} // namespace

std::vector<right_hand_side> read_right_hand_sides(const std::string& text) {
    std::vector<right_hand_side> all;
    for (const std::string& name : split(text)) std::ranges::move(read_name(name), std::back_inserter(all));
    return all;
}

std::string show(const right_hand_side& one) {
    switch (one.kind) {
    case source::file: return file + one.path;
    case source::point:
        return point + lattice::to_string(one.site) + ':' + std::to_string(one.spin) + '.' + std::to_string(one.colour);
    case source::random:
        if (one.number > 0) return random_one + std::to_string(one.number);
        [[fallthrough]];
    default: return show_choice(one.kind, made_here());
    }
}

std::string show(const std::vector<right_hand_side>& all) {
    std::vector<std::string> names;
    for (const auto& one : all) names.push_back(show(one));
    return show_list(names);
}

} // namespace halocline::app
