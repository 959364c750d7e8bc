// SPDX-License-Identifier: Apache-2.0
#include <halocline/config/reader.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <set>
#include <string_view>

#include <unistd.h>

namespace halocline::config {
namespace {

/// Insertions, deletions, substitutions and swaps of neighbours from a to b, none of which touches the same letters twice
/// (optimal string alignment).
std::size_t edit_distance(const std::string& a, const std::string& b) {
    std::vector<std::size_t> before(b.size() + 1), above(before), row(before); // of i - 2, i - 1 and i letters of a
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        before.swap(above);
        above.swap(row);
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], before[j - 2] + 1);
        }
    }
    return row[b.size()];
}

/// How far what somebody wrote is from a name of ours: an abbreviation is as near as one wrong letter.
std::size_t distance_from(const std::string& ours, const std::string& written) {
    return ours.starts_with(written) ? 1 : edit_distance(ours, written);
}

/// What somebody wrote, short enough for a line.
std::string shortened(const std::string& text) {
    constexpr std::size_t most = 80;
    return text.size() > most ? text.substr(0, most) + "..." : text;
}

std::string in_lower_case(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return text;
}

/// "level.0" is written as [[level]]: the length of "level"; npos for a plain section.
std::size_t end_of_table_name(const std::string& section) {
    const auto dot = section.rfind('.');
    const bool counted = dot != std::string::npos && dot + 1 < section.size() &&
                         std::all_of(section.begin() + static_cast<std::ptrdiff_t>(dot) + 1, section.end(),
                                     [](unsigned char c) { return std::isdigit(c) != 0; });
    return counted ? dot : std::string::npos;
}

/// "[comm]", "[[level]] number 1".
std::string section_in_file(const std::string& section) {
    const auto end = end_of_table_name(section);
    if (end == std::string::npos) return "[" + section + "]";
    return "[[" + section.substr(0, end) + "]] number " + section.substr(end + 1);
}

/// "[lattice], [operator], [[level]], ...", in the order of the keys.
std::string sections_of(const std::vector<key_name>& known) {
    std::vector<std::string> names;
    for (const key_name& k : known) {
        const auto end = end_of_table_name(k.section);
        std::string name = end == std::string::npos ? "[" + k.section + "]" : "[[" + k.section.substr(0, end) + "]]";
        if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    }
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
}

/// "[comm] transports, slab_gib, ...": the keys of a section; if it has none, the sections.
std::string names_of(const std::string& section, const std::vector<key_name>& known) {
    std::string text;
    for (const key_name& k : known)
        if (k.section == section) text += (text.empty() ? section_in_file(section) + " " : ", ") + k.name;
    return text.empty() ? sections_of(known) : text;
}

/// "level" of "level.0"; a plain section as it is.
std::string table_name(const std::string& section) { return section.substr(0, end_of_table_name(section)); }

/// Is `name` one of our names with one letter wrong, too many or too few, two swapped, in different case, or with one
/// bracket instead of two, or two instead of one?
bool is_nearly(const std::string& name, const std::string& ours) {
    return edit_distance(table_name(in_lower_case(name)), table_name(ours)) <= 1;
}

/// Keys before the first section belong to nobody; refused only if one has the name of one of our keys.
void refuse_loose_keys(const file_section& loose, const std::vector<key_name>& known, other_sections others) {
    for (const file_entry& e : loose.entries) {
        const auto is_of = [&](const key_name& k) { return k.section == e.name || k.section == e.name + ".0"; };
        if (const auto k = std::ranges::find_if(known, is_of); k != known.end())
            throw config_error(e.name, e.where + ": '" + e.name + "' has the wrong type: it is a section, " +
                                           section_in_file(k->section) + ", not a key");
        const auto ours = std::ranges::find(known, e.name, &key_name::name);
        if (ours != known.end())
            throw config_error(e.name, e.where + ": '" + e.name + "' stands in no section; write it below [" +
                                           ours->section + "]");
        if (others == other_sections::refused)
            throw config_error(e.name, e.where + ": unknown key '" + shortened(e.name) +
                                           "' at the top; keys stand in " + sections_of(known));
    }
}

/// Variables that are not keys (docs/running.md).
constexpr std::array other_variables{
    "HALOCLINE_CONFIG", "HALOCLINE_DATA_DIR",    "HALOCLINE_BOOTSTRAP", "HALOCLINE_NETWORK",  "HALOCLINE_NODE",
    "HALOCLINE_MPI",    "HALOCLINE_MODULE_PATH", "HALOCLINE_GRACE_MS",  "HALOCLINE_STALL_MS", "HALOCLINE_CHECK"};

/// What the launcher sets for the ranks, and what scripts read.
constexpr std::array own_variables{
    "HALOCLINE_RANK",      "HALOCLINE_SIZE",      "HALOCLINE_JOB",         "HALOCLINE_BOOTSTRAP_FD",
    "HALOCLINE_LIFELINES", "HALOCLINE_BENCH_GIT", "HALOCLINE_WITHOUT_MPI", "HALOCLINE_WITHOUT_PACKAGES"};

constexpr std::string_view variable_prefix = "HALOCLINE_";

std::string in_capitals(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return text;
}

/// "COMM" of HALOCLINE_COMM_PATH; "" without a second underscore.
std::string section_of_variable(const std::string& variable) {
    const std::size_t end = variable.find('_', variable_prefix.size());
    return end == std::string::npos ? "" : variable.substr(variable_prefix.size(), end - variable_prefix.size());
}

/// Is the variable this name with a letter wrong or two swapped, of a long name twice, or without its unit? What is nearly
/// a short word may be another one: HALOCLINE_HOME is nearly HALOCLINE_NODE.
bool is_nearly_variable(const std::string& variable, const std::string& name) {
    constexpr std::size_t long_name = 8;
    const std::size_t most = name.size() - variable_prefix.size() >= long_name ? 2 : 1;
    return edit_distance(name, variable) <= most || name == variable + "_MS";
}

bool is_known_variable(const std::string& variable, const std::vector<key_name>& known) {
    return std::ranges::count(other_variables, variable) > 0 || std::ranges::count(own_variables, variable) > 0 ||
           std::ranges::count(known, variable, &key_name::environment) > 0 ||
           std::ranges::count(known, variable, &key_name::short_variable) > 0;
}

/// What the setter of `variable` probably meant; "" if it is known, or may belong to anybody.
std::string meant_by(const std::string& variable, const std::vector<key_name>& known) {
    const std::string upper = in_capitals(variable);
    if (!upper.starts_with(variable_prefix) || is_known_variable(variable, known)) return "";
    if (is_known_variable(upper, known)) return upper;
    if (!variable.starts_with(variable_prefix)) return "";
    const std::string section = section_of_variable(variable);
    const auto is_of_section = [&](const key_name& k) { return section_of_variable(k.environment()) == section; };
    const auto is_of_near_section = [&](const key_name& k) { // a short name may be another program's
        constexpr std::size_t shortest = 4;
        const std::string ours = section_of_variable(k.environment());
        return ours.size() >= shortest && !section.empty() && edit_distance(ours, section) <= 1;
    };
    const auto distance = [&](const key_name& k) { return distance_from(k.environment(), variable); };
    if (std::ranges::any_of(known, is_of_section) || std::ranges::any_of(known, is_of_near_section))
        return std::ranges::min_element(known, {}, distance)->environment();

    if (variable == "HALOCLINE_CONFIG_FILE" || variable == "HALOCLINE_CONFIG_PATH") return file_variable;
    const auto is_near = [&](const std::string& name) { return is_nearly_variable(variable, name); };
    if (const auto* other = std::ranges::find_if(other_variables, is_near); other != other_variables.end())
        return *other;
    // HALOCLINE_COMMTRANSPORTS, HALOCLINE_GAUGE, HALOCLINE_TRANSPORT
    constexpr std::size_t long_enough = 8;
    const auto is_meant = [&](const key_name& k) {
        const std::string full = k.environment();
        if (is_near(full)) return true;
        const std::string name = std::string(variable_prefix) + full.substr(full.size() - k.name.size());
        return k.name.size() >= long_enough ? is_near(name) : variable == name && variable != "HALOCLINE_PATH";
    };
    const auto key = std::ranges::find_if(known, is_meant);
    return key == known.end() ? "" : key->environment();
}

} // namespace

std::string key_name::environment() const {
    std::string text = "HALOCLINE_" + section + "_" + name;
    std::ranges::replace(text, '.', '_');
    return in_capitals(std::move(text));
}

std::string name_in_file(const std::string& key_path) {
    const auto dot = key_path.rfind('.');
    if (dot == std::string::npos) return key_path;
    const std::string section = key_path.substr(0, dot);
    return section_in_file(section) + (end_of_table_name(section) == std::string::npos ? " " : ", ") +
           key_path.substr(dot + 1);
}

std::size_t place_of(const std::string& key_path, const std::vector<key_name>& known, const std::string& where) {
    const auto found = std::ranges::find(known, key_path, &key_name::path);
    if (found != known.end()) return static_cast<std::size_t>(found - known.begin());
    const auto dot = key_path.rfind('.');
    const std::string name = key_path.substr(dot + 1);
    const auto distance = [&](const key_name& k) { // so that the right name in the wrong section counts as near
        constexpr std::size_t other_section = 2;
        return std::min(distance_from(k.path(), key_path), distance_from(k.name, name) + other_section);
    };
    const std::string unknown = where + ": unknown key '" + shortened(name_in_file(key_path)) + "'; ";
    const key_name& nearest = *std::ranges::min_element(known, {}, distance);
    const std::size_t least = std::min(distance_from(nearest.path(), key_path), distance_from(nearest.name, name));
    if (least <= std::max<std::size_t>(1, name.size() / 2))
        throw config_error(key_path, unknown + "the nearest known one is '" + name_in_file(nearest.path()) + "'");
    throw config_error(key_path, unknown + "known are " + names_of(key_path.substr(0, dot), known));
}

bool is_known_section(const file_section& section, const std::vector<key_name>& known, other_sections others) {
    if (section.name.empty()) {
        refuse_loose_keys(section, known, others);
        return false;
    }
    if (std::ranges::find(known, section.name, &key_name::section) != known.end()) return true;
    if (const auto end = end_of_table_name(section.name); end != std::string::npos) {
        std::set<std::string> numbers;
        for (const key_name& k : known)
            if (end_of_table_name(k.section) == end && k.section.starts_with(section.name.substr(0, end + 1)))
                numbers.insert(k.section);
        if (!numbers.empty())
            throw config_error(section.name, section.where + ": unknown section " +
                                                 shortened(section_in_file(section.name)) + "; there can be " +
                                                 std::to_string(numbers.size()) + ", from number 0");
    }
    const auto near =
        std::ranges::find_if(known, [&](const key_name& k) { return is_nearly(section.name, k.section); });
    if (others == other_sections::refused || near != known.end())
        throw config_error(section.name, section.where + ": unknown section " +
                                             shortened(section_in_file(section.name)) + "; known are " +
                                             sections_of(known));
    return false;
}

void refuse_misspelt_variables(const std::vector<key_name>& known) {
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text(*entry);
        const std::string variable(text.substr(0, text.find('=')));
        if (const std::string meant = meant_by(variable, known); !meant.empty())
            throw config_error(variable, "environment: unknown variable '" + shortened(variable) +
                                             "'; the nearest known one is '" + meant + "'");
    }
}

} // namespace halocline::config
