// SPDX-License-Identifier: Apache-2.0
#include <halocline_app/settings.hpp>
#include <halocline_app/value_text.hpp>

#include <halocline/comm/transport_names.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>

#include <unistd.h>

#include <toml++/toml.h>

namespace halocline::app {
namespace {

constexpr std::uintmax_t largest_file = 1 << 20;

constexpr const char* known_sections = "[lattice], [operator], [solver], [[level]], [comm], [faults]";

/// FILE:LINE:COLUMN.
std::string position(const std::string& path, const toml::source_region& region) {
    return path + ":" + std::to_string(region.begin.line) + ":" + std::to_string(region.begin.column);
}

/// Levenshtein's distance: insertions, deletions and substitutions from a to b.
std::size_t edit_distance(const std::string& a, const std::string& b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t substitute = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
        }
    }
    return row[b.size()];
}

std::string nearest_key(const std::string& path) {
    const auto& keys = setting_keys();
    return std::ranges::min_element(keys, {}, [&](const auto& k) { return edit_distance(k.path(), path); })->path();
}

const setting_key* find_key(const std::string& path) {
    const auto& keys = setting_keys();
    const auto found = std::ranges::find(keys, path, [](const auto& k) { return k.path(); });
    return found == keys.end() ? nullptr : &*found;
}

/// HALOCLINE_COMM_TRANSPORT is meant for us and means nothing; HALOCLINE_ROOT may be anybody's.  Err: config_error.
void refuse_misspelt(const std::string& variable) {
    const auto section_of = [](const std::string& name) {
        return name.substr(0, name.find('_', std::strlen("HALOCLINE_")) + 1);
    };
    const auto& keys = setting_keys();
    bool section_is_known = false;
    for (const auto& key : keys) {
        if (key.environment() == variable) return;
        section_is_known = section_is_known || variable.starts_with(section_of(key.environment()));
    }
    if (!section_is_known) return;
    const auto distance = [&](const auto& key) { return edit_distance(key.environment(), variable); };
    throw config_error(variable, "environment: unknown variable '" + variable + "'; the nearest known one is '" +
                                     std::ranges::min_element(keys, {}, distance)->environment() + "'");
}

/// "[level.0] blocks" is how a reader of the file knows the key.
std::string file_name_of(const std::string& path) {
    const auto dot = path.rfind('.');
    if (dot == std::string::npos) return path;
    const std::string section = path.substr(0, dot), name = path.substr(dot + 1);
    if (section.starts_with("level.")) return "[[level]] number " + section.substr(6) + ", " + name;
    return "[" + section + "] " + name;
}

/// A TOML value in the same textual form as on the command line.
std::string text_of(const toml::node& node) {
    if (const auto* s = node.as_string()) return s->get();
    if (const auto* i = node.as_integer()) return std::to_string(i->get());
    if (const auto* d = node.as_floating_point()) return show_real(d->get());
    if (const auto* b = node.as_boolean()) return b->get() ? "true" : "false";
    if (const auto* array = node.as_array()) {
        const bool numbers = array->is_homogeneous(toml::node_type::integer);
        std::string text;
        for (const auto& item : *array) {
            if (item.is_array() || item.is_table()) expected("a flat array");
            text += (text.empty() ? "" : numbers ? "." : ",") + text_of(item);
        }
        return text;
    }
    expected("a string, number, boolean or array");
}

/// Every key of one table of the file.
void read_section(settings_reader& reader, const std::string& path, const std::string& section,
                  const toml::table& table) {
    for (const auto& [name, node] : table) {
        const std::string key_path = section + "." + std::string(name.str());
        const std::string where = position(path, node.source());
        if (!find_key(key_path)) reader.set(key_path, "", where); // throws, naming the nearest key
        std::string text;
        try {
            text = text_of(node);
        } catch (const std::invalid_argument& problem) {
            throw config_error(key_path, where + ": " + file_name_of(key_path) + ": " + problem.what());
        }
        reader.set(key_path, text, where);
    }
}

} // namespace

void settings_reader::set(const std::string& key_path, const std::string& text, const std::string& where) {
    const setting_key* key = find_key(key_path);
    if (!key)
        throw config_error(key_path, where + ": unknown key '" + file_name_of(key_path) +
                                         "'; the nearest known one is '" + file_name_of(nearest_key(key_path)) + "'");
    if (text.find('\0') != std::string::npos) // no file has such a name
        throw config_error(key_path, where + ": " + file_name_of(key_path) + ": expected a text without zero bytes");
    try {
        key->read(values_, text);
    } catch (const std::invalid_argument& problem) {
        throw config_error(key_path, where + ": " + file_name_of(key_path) + " = '" + text + "': " + problem.what());
    }
    std::erase_if(origins_, [&](const auto& o) { return o.first == key_path; });
    origins_.emplace_back(key_path, where);
}

void settings_reader::read_file(const std::string& path) {
    std::error_code failure;
    const auto status = std::filesystem::status(path, failure);
    if (failure) throw config_error("", "config file '" + path + "': " + failure.message());
    if (!std::filesystem::is_regular_file(status)) // every rank reads it
        throw config_error("", "config file '" + path + "': is not a regular file");
    const auto bytes = std::filesystem::file_size(path, failure);
    if (failure) throw config_error("", "config file '" + path + "': " + failure.message());
    if (bytes > largest_file)
        throw config_error("", "config file '" + path + "': " + std::to_string(bytes) + " bytes; the limit is " +
                                   std::to_string(largest_file));
    toml::table root;
    try {
        root = toml::parse_file(path);
    } catch (const toml::parse_error& problem) {
        throw config_error("", position(path, problem.source()) + ": " + std::string(problem.description()));
    }

    for (const auto& [name, node] : root) {
        const std::string section(name.str());
        const std::string where = position(path, node.source());
        if (const auto* table = node.as_table(); table && section != "level") {
            if (std::ranges::none_of(setting_keys(), [&](const auto& k) { return k.section == section; }))
                throw config_error(section, where + ": unknown section [" + section + "]; known are " + known_sections);
            read_section(*this, path, section, *table);
        } else if (const auto* levels = node.as_array(); levels && section == "level" && levels->is_array_of_tables()) {
            if (levels->size() > 2)
                throw config_error("level", where + ": " + std::to_string(levels->size()) +
                                                " [[level]] tables; this multigrid has 2 levels");
            for (std::size_t n = 0; n < levels->size(); ++n)
                read_section(*this, path, "level." + std::to_string(n), *levels->get(n)->as_table());
        } else {
            throw config_error(section,
                               where + ": unknown key '" + section + "' at the top; keys stand in " + known_sections);
        }
    }
}

void settings_reader::read_environment() {
    for (const auto& key : setting_keys())
        if (const char* text = std::getenv(key.environment().c_str())) set(key.path(), text, key.environment());
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text(*variable);
        refuse_misspelt(std::string(text.substr(0, text.find('='))));
    }
}

void settings_reader::check() const {
    const bool tiled = values_.tile != lattice::coordinate{1, 1, 1, 1};
    if (tiled && values_.gauge.empty())
        throw config_error("lattice.tile", as_given("lattice.tile") + ": repeats a gauge file; without --gauge use "
                                                                      "--grid to repeat the demo configuration");
    const std::vector<std::string> known = comm::transport_names();
    for (const std::string& name : values_.transports)
        if (std::ranges::find(known, name) == known.end())
            throw config_error("comm.transports", as_given("comm.transports") + ": unknown transport '" + name +
                                                      "'; known are " + show_list(known));
}

const std::string& settings_reader::origin(const std::string& key_path) const {
    static const std::string built_in = "default";
    const auto found = std::ranges::find(origins_, key_path, [](const auto& o) { return o.first; });
    return found == origins_.end() ? built_in : found->second;
}

std::string settings_reader::as_given(const std::string& key_path) const {
    const std::string& where = origin(key_path);
    const std::string value = find_key(key_path)->show(values_);
    return where.starts_with("--") ? where + " " + value : where + ": " + file_name_of(key_path) + " = " + value;
}

std::string settings_reader::effective() const {
    std::string text;
    for (const auto& key : setting_keys())
        if (!key.of_host) text += key.path() + " = " + key.show(values_) + "\n";
    return text;
}

} // namespace halocline::app
