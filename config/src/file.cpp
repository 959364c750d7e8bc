// SPDX-License-Identifier: Apache-2.0
#include <halocline/config/file.hpp>
#include <halocline/config/value_text.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

#include <toml++/toml.h>

namespace halocline::config {
namespace {

constexpr std::uintmax_t largest_file = 1 << 20;
constexpr int most_dots = 16; // in a key; the parser calls itself for each

/// FILE:LINE:COLUMN.
std::string position(const std::string& path, const toml::source_region& region) {
    return path + ":" + std::to_string(region.begin.line) + ":" + std::to_string(region.begin.column);
}

/// The text has a point, an exponent or "inf": a key of whole numbers must not take 1e3 and refuse 1e5.
std::string text_of(double value) {
    const std::string text = show_real(value);
    return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

/// A TOML value as text, as on the command line.  Err: std::invalid_argument.
std::string text_of(const toml::node& node) {
    if (const auto* s = node.as_string()) return s->get();
    if (const auto* i = node.as_integer()) return std::to_string(i->get());
    if (const auto* d = node.as_floating_point()) return text_of(d->get());
    if (const auto* b = node.as_boolean()) return b->get() ? "true" : "false";
    if (const auto* array = node.as_array()) {
        const bool numbers = array->is_homogeneous(toml::node_type::integer);
        std::string text;
        for (std::size_t i = 0; i < array->size(); ++i) {
            const toml::node& item = *array->get(i);
            if (item.is_array() || item.is_table()) expected("a flat array");
            const std::string one = text_of(item);
            if (one.empty()) expected("an array without empty texts");
            if (one.find(',') != std::string::npos)
                expected("an array of texts without commas, which separate its items");
            text += (i == 0 ? "" : numbers ? "." : ",") + one;
        }
        return text;
    }
    expected("a string, number, boolean or array");
}

file_entry entry_of(const std::string& path, const toml::key& key, const toml::node& node) {
    file_entry e{std::string(key.str()), "", position(path, node.source()), node.is_array()};
    try {
        e.text = text_of(node);
    } catch (const std::invalid_argument& problem) {
        e.wrong = problem.what();
    }
    return e;
}

file_section section_of(const std::string& path, const std::string& name, const toml::table& table) {
    file_section s{name, position(path, table.source()), {}};
    for (const auto& [key, node] : table) s.entries.push_back(entry_of(path, key, node));
    return s;
}

/// The end of the string that begins at `at` with a quotation mark; its line feeds are added to `line`.
std::size_t end_of_string(std::string_view text, std::size_t at, int& line) {
    const char quote = text[at];
    const bool is_long = text.substr(at).starts_with(std::string(3, quote));
    const std::string mark(is_long ? 3 : 1, quote);
    for (at += mark.size(); at < text.size(); ++at) {
        if (text[at] == '\n') {
            if (!is_long) return at; // the parser refuses it
            ++line;
        } else if (quote == '"' && text[at] == '\\' && at + 1 < text.size() && text[at + 1] != '\n') {
            ++at; // what is escaped
        } else if (text.substr(at).starts_with(mark)) {
            at += mark.size();
            for (int own = 0; is_long && own < 2 && at < text.size() && text[at] == quote; ++own) ++at;
            return at;
        }
    }
    return at;
}

/// Err: config_error: a key or the name of a table has so many parts that the parser's stack could overflow.
void check_depth(const std::string& path, std::string_view text) {
    int line = 1, dots = 0;
    for (std::size_t at = 0; at < text.size();) {
        const char c = text[at];
        if (c == '"' || c == '\'') {
            at = end_of_string(text, at, line);
        } else if (c == '#') {
            at = std::min(text.find('\n', at), text.size());
        } else {
            if (std::string_view("=,[]{}\n").find(c) != std::string_view::npos) dots = 0; // a key ends there
            if (c == '.' && ++dots > most_dots)
                throw config_error("", path + ":" + std::to_string(line) + ": a key or section with more than " +
                                           std::to_string(most_dots) + " dots in its name");
            if (c == '\n') ++line;
            ++at;
        }
    }
}

std::string text_of_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string text(largest_file, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size())); // iterators of its buffer would throw
    if (!file.is_open() || file.bad()) throw config_error("", "config file '" + path + "': can't be read");
    text.resize(static_cast<std::size_t>(file.gcount()));
    return text;
}

toml::table parsed(const std::string& path) {
    const auto refused = [&](const std::string& why) { return config_error("", "config file '" + path + "': " + why); };
    std::error_code failure;
    const auto status = std::filesystem::status(path, failure);
    if (failure) throw refused(failure.message());
    if (!std::filesystem::is_regular_file(status)) throw refused("is not a regular file"); // every rank reads it
    const auto bytes = std::filesystem::file_size(path, failure);
    if (failure) throw refused(failure.message());
    if (bytes > largest_file)
        throw refused(std::to_string(bytes) + " bytes; the limit is " + std::to_string(largest_file));
    const std::string text = text_of_file(path);
    check_depth(path, text);
    try {
        return toml::parse(text);
    } catch (const toml::parse_error& problem) {
        throw config_error("", position(path, problem.source()) + ": " + std::string(problem.description()));
    }
}

} // namespace

std::vector<file_section> read_file(const std::string& path) {
    std::vector<file_section> sections;
    file_section loose{"", path, {}};
    for (const auto& [key, node] : parsed(path)) {
        const std::string name(key.str());
        if (const auto* table = node.as_table()) {
            sections.push_back(section_of(path, name, *table));
        } else if (const auto* tables = node.as_array(); tables && tables->is_array_of_tables()) {
            for (std::size_t n = 0; n < tables->size(); ++n)
                sections.push_back(section_of(path, name + "." + std::to_string(n), *tables->get(n)->as_table()));
        } else {
            loose.entries.push_back(entry_of(path, key, node));
        }
    }
    if (!loose.entries.empty()) sections.push_back(std::move(loose));
    return sections;
}

} // namespace halocline::config
