// SPDX-License-Identifier: Apache-2.0
#include <halocline/config/value_text.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>
#include <string_view>

namespace halocline::config {

double read_real(const std::string& text, double lowest, double highest, const std::string& range) {
    // Not strtod(), which reads as the host program's locale wants it.
    std::string_view digits = text;
    if (digits.starts_with('+') && !digits.starts_with("+-")) digits.remove_prefix(1); // from_chars() takes none
    double value = 0;
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool whole = failure == std::errc{} && end == digits.data() + digits.size();
    if (!whole || !std::isfinite(value) || value < lowest || value > highest) expected(range);
    return value;
}

std::string show_real(double value) {
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    return {text.data(), end};
}

std::string printable(std::string text) {
    // Not iscntrl(), which in some locales is true of parts of a letter in UTF-8.
    std::ranges::replace_if(
        text, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
    return text;
}

std::vector<std::string> read_list(const std::string& text) {
    std::vector<std::string> items;
    std::istringstream in(text);
    for (std::string item; std::getline(in, item, ',');) {
        const std::size_t first = item.find_first_not_of(' ');
        if (first == std::string::npos) expected("one or more names, like shm,mpi");
        items.push_back(item.substr(first, item.find_last_not_of(' ') + 1 - first));
    }
    if (items.empty()) expected("one or more names, like shm,mpi");
    return items;
}

std::string show_list(const std::vector<std::string>& items) {
    std::string text;
    for (const auto& item : items) text += (text.empty() ? "" : ",") + item;
    return text;
}

std::string alternatives(std::span<const std::string> names) {
    std::string text;
    for (std::size_t i = 0; i < names.size(); ++i)
        text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i];
    return text;
}

} // namespace halocline::config
