// SPDX-License-Identifier: Apache-2.0
// Flags whose values are read as strictly as keys of the config file: "-1" is not a seed, and "" is not a coupling.
#pragma once

#include <halocline/base/error.hpp>
#include <halocline_app/value_text.hpp>

#include <CLI/CLI.hpp>

#include <stdexcept>
#include <string>

namespace halocline::app {

/// The value that `read` makes of a flag's text.  Err: input_error with flag, text, and what is expected.
template <class Read>
auto read_flag(const std::string& flag, const std::string& text, Read read) {
    try {
        return read(text);
    } catch (const std::invalid_argument& problem) {
        throw input_error(flag + " '" + config::printable(text) + "': " + problem.what());
    }
}

/// A whole number in [lowest, highest] for `value`, which holds the default.  Parsing: Err: input_error.
template <class Int>
void add_integer_flag(CLI::App& cli, const std::string& flag, Int& value, Int lowest, Int highest,
                      const std::string& description) {
    const auto set = [=, &value](const std::string& text) {
        value = read_flag(flag, text, [=](const std::string& t) { return read_integer<Int>(t, lowest, highest); });
    };
    cli.add_option_function<std::string>(flag, set, description)->type_name("N")->default_str(std::to_string(value));
}

/// A real number in [lowest, highest] for `value`, which holds the default; `range` says so in words.  Parsing: Err:
/// input_error.
inline void add_real_flag(CLI::App& cli, const std::string& flag, double& value, double lowest, double highest,
                          const std::string& range, const std::string& description) {
    const auto set = [=, &value](const std::string& text) {
        value = read_flag(flag, text, [=](const std::string& t) { return read_real(t, lowest, highest, range); });
    };
    cli.add_option_function<std::string>(flag, set, description)->type_name("REAL")->default_str(show_real(value));
}

/// Err: input_error for "": `--json "$FILE"` with FILE unset would silently do something else.
inline void refuse_empty(const std::string& flag, const std::string& text, const std::string& type) {
    if (text.empty()) throw input_error(flag + " '': expected " + type + "; without " + flag + " its default holds");
}

/// A text that is not empty, for `value`; a flag, or an argument by position.  Parsing: Err: input_error.
inline void add_text_flag(CLI::App& cli, const std::string& flag, std::string& value, const std::string& type,
                          const std::string& description) {
    const auto set = [=, &value](const std::string& text) {
        refuse_empty(flag, text, type);
        value = text;
    };
    cli.add_option_function<std::string>(flag, set, description)->option_text(type);
}

} // namespace halocline::app
