// SPDX-License-Identifier: Apache-2.0
#include "file_text.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace halocline::lattice {
namespace {

template <class Number, class... Format>
std::optional<Number> parse_whole(std::string_view text, Format... format) {
    Number value{};
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, format...);
    if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

} // namespace

std::string_view trim(std::string_view text) {
    constexpr std::string_view blanks(" \t\r\n\0", 5);
    const std::size_t first = text.find_first_not_of(blanks);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string shown(std::string_view text) {
    constexpr std::size_t most = 40;
    std::string printable(text.substr(0, most));
    std::ranges::replace_if(
        printable, [](unsigned char c) { return std::iscntrl(c) != 0; }, '?');
    return printable + (text.size() > most ? "..." : "");
}

std::optional<int> parse_int(std::string_view text) { return parse_whole<int>(text); }
std::optional<double> parse_double(std::string_view text) {
    if (text.starts_with('+')) text.remove_prefix(1); // C's printf may write it, from_chars refuses it
    const std::optional<double> value = parse_whole<double>(text);
    return value && std::isfinite(*value) ? value : std::nullopt;
}
std::optional<std::uint32_t> parse_hex(std::string_view text) {
    if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
    return text.size() <= 8 ? parse_whole<std::uint32_t>(text, 16) : std::nullopt;
}
std::string why_no_number(std::string_view text, bool hexadecimal) {
    if (hexadecimal && (text.starts_with("0x") || text.starts_with("0X"))) text.remove_prefix(2);
    const char* digits = hexadecimal ? "0123456789abcdefABCDEF" : "0123456789";
    const bool number = !text.empty() && text.find_first_not_of(digits) == std::string_view::npos;
    return number ? "a number that is too large" : "not a number";
}
double last_digit(std::string_view number) {
    constexpr double most = 1e-4;
    const std::size_t exponent = std::min(number.find_first_of("eE"), number.size());
    const std::size_t point = std::min(number.find('.'), exponent);
    const std::size_t decimals = exponent - std::min(point + 1, exponent);
    const std::optional<double> scale = parse_double("1" + std::string(number.substr(exponent)));
    return std::min(most, scale.value_or(1) * std::pow(10.0, -static_cast<double>(decimals)));
}
std::string to_hex(std::uint32_t value) {
    char digits[8];
    for (int i = 0; i < 8; ++i) digits[i] = "0123456789abcdef"[(value >> (28 - 4 * i)) & 15];
    return {digits, 8};
}

} // namespace halocline::lattice
