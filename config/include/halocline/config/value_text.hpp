// SPDX-License-Identifier: Apache-2.0
// Values as text: as written in a file, in the environment or on the command line, and as shown.
// The reading functions throw std::invalid_argument, whose text is "expected " and what would be right.
#pragma once

#include <algorithm>
#include <charconv>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace halocline::config {

/// Err: always std::invalid_argument.
[[noreturn]] inline void expected(const std::string& what) { throw std::invalid_argument("expected " + what); }

/// A whole number in [lowest, highest].
template <class Int>
Int read_integer(const std::string& text, Int lowest, Int highest) {
    Int value{};
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc{} || end != text.data() + text.size() || value < lowest || value > highest)
        expected("a whole number from " + std::to_string(lowest) + " to " + std::to_string(highest));
    return value;
}

/// A finite number in [lowest, highest]; `range` says so in words.
double read_real(const std::string& text, double lowest, double highest, const std::string& range);
/// The shortest text that reads as this number.
std::string show_real(double value);

/// The text with '?' for each control character: a message stays one line, and no terminal obeys what is quoted in it.
std::string printable(std::string text);

/// One or more items, none empty, separated by commas; one more comma may follow.
std::vector<std::string> read_list(const std::string& text);
/// The items, separated by commas.
std::string show_list(const std::vector<std::string>& items);

/// A value of an enumeration (or a bool) and its name.
template <class Value>
struct choice {
    std::string name;
    Value value;
};
/// "periodic, antiperiodic or open".
std::string alternatives(std::span<const std::string> names);

/// The value of the choice with this name.
template <class Value>
Value read_choice(const std::string& text, const std::vector<choice<Value>>& choices) {
    std::vector<std::string> names;
    for (const auto& c : choices) {
        if (c.name == text) return c.value;
        names.push_back(c.name);
    }
    expected(alternatives(names));
}

/// The name of the choice with this value.  Pre: there is one.
template <class Value>
std::string show_choice(Value value, const std::vector<choice<Value>>& choices) {
    return std::ranges::find(choices, value, &choice<Value>::value)->name;
}

} // namespace halocline::config
