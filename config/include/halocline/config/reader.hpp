// SPDX-License-Identifier: Apache-2.0
// Builds settings from files, the environment and flags, read one after the other. The last source that sets a key
// wins, and the reader remembers which one that was.
#pragma once

#include <halocline/config/config_error.hpp>
#include <halocline/config/file.hpp>
#include <halocline/config/keys.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace halocline::config {

/// Names the config file that every program reads, whether or not it has a flag for one.
inline constexpr const char* file_variable = "HALOCLINE_CONFIG";

/// What to do with sections of a file that contain no known key.
enum class other_sections {
    refused,
    left_alone, ///< they belong to another program; but one that is misspelt by a letter is refused
};

/// "[comm] transports", "[[level]] number 0, blocks": how a key appears to a reader of the file.
[[nodiscard]] std::string name_in_file(const std::string& key_path);

// The parts of a reader that do not depend on the table.

/// The index of a key in `known`.  Err: config_error with the nearest one, or with what its section has.
[[nodiscard]] std::size_t place_of(const std::string& key_path, const std::vector<key_name>& known,
                                   const std::string& where);
/// Does this section contain keys of `known`?  Err: config_error for a foreign section, if `others` refuses it.
[[nodiscard]] bool is_known_section(const file_section& section, const std::vector<key_name>& known,
                                    other_sections others);
/// Refuses variables that nearly match a key, such as HALOCLINE_COMM_TRANSPORT or HALOCLINE_TRANSPORTS; others, such as
/// HALOCLINE_ROOT, may belong to anybody.  Err: config_error.
void refuse_misspelt_variables(const std::vector<key_name>& known);

/// Reads settings according to a table of keys.  Pre: the table outlives it.
template <class Settings>
class reader {
  public:
    explicit reader(const std::vector<key<Settings>>& keys, Settings defaults = {})
        : keys_(&keys), names_(keys.begin(), keys.end()), values_(std::move(defaults)) {}

    /// Err: config_error with file, line, column, key and the nearest known key.
    void read_file(const std::string& path, other_sections others) {
        for (const file_section& section : config::read_file(path)) {
            if (!is_known_section(section, names_, others)) continue;
            for (const file_entry& e : section.entries) {
                const std::string key_path = section.name + "." + e.name;
                const auto& found = (*keys_)[place_of(key_path, names_, e.where)]; // before a wrong value is reported
                if (!e.wrong.empty())
                    throw config_error(key_path, e.where + ": " + name_in_file(key_path) + ": " + e.wrong);
                if (e.is_list && !found.of_list) // otherwise the text of [1, 2] would be read as 1.2
                    throw config_error(key_path, e.where + ": " + name_in_file(key_path) +
                                                     ": expected one string, number or boolean");
                set(key_path, e.text, e.where);
            }
        }
    }
    /// Reads the file that $HALOCLINE_CONFIG names, if it is set; the file may contain sections of other programs.
    /// Err: config_error.
    void read_file_of_environment() {
        if (const char* path = std::getenv(file_variable); path != nullptr && *path != '\0')
            read_file(path, other_sections::left_alone);
    }
    /// HALOCLINE_<SECTION>_<KEY>, and before it the key's short variable, unless that is empty.  Err: config_error, also
    /// for a variable that nearly matches one of these.
    void read_environment() {
        for (const auto& k : *keys_) {
            const char* const brief = k.short_variable.empty() ? nullptr : std::getenv(k.short_variable.c_str());
            if (brief != nullptr && *brief != '\0') set(k.path(), brief, k.short_variable);
            if (const char* text = std::getenv(k.environment().c_str())) set(k.path(), text, k.environment());
        }
        refuse_misspelt_variables(names_);
    }
    /// `where` names the origin in messages, e.g. "--blocks".  Err: config_error.
    void set(const std::string& key_path, const std::string& text, const std::string& where) {
        const auto& found = (*keys_)[place_of(key_path, names_, where)];
        if (text.find('\0') != std::string::npos) // no file can have such a name
            throw config_error(key_path,
                               where + ": " + name_in_file(key_path) + ": expected a text without zero bytes");
        try {
            found.read(values_, text);
        } catch (const std::invalid_argument& problem) {
            throw config_error(key_path,
                               where + ": " + name_in_file(key_path) + " = '" + text + "': " + problem.what());
        }
        std::erase_if(origins_, [&](const auto& o) { return o.first == key_path; });
        origins_.emplace_back(key_path, where);
    }

    /// The values read so far.
    [[nodiscard]] const Settings& values() const { return values_; }
    /// "default", "configs/demo.toml:12:1", "HALOCLINE_COMM_TRANSPORTS", "--blocks".
    [[nodiscard]] const std::string& origin(const std::string& key_path) const {
        static const std::string built_in = "default";
        const auto found = std::ranges::find(origins_, key_path, [](const auto& o) { return o.first; });
        return found == origins_.end() ? built_in : found->second;
    }
    /// The key and its value as the user wrote them, for the start of an error message: "--blocks 3.4.4.4",
    /// "configs/demo.toml:12:1: [lattice] mpi = 3.1.1.1".
    [[nodiscard]] std::string as_given(const std::string& key_path) const {
        const std::string& where = origin(key_path);
        const std::string value = (*keys_)[place_of(key_path, names_, where)].show(values_);
        return where.starts_with("--") ? where + " " + value : where + ": " + name_in_file(key_path) + " = " + value;
    }
    /// All keys and values except those of hosts, as text: equal texts mean equal jobs.
    [[nodiscard]] std::string effective() const {
        std::string text;
        for (const auto& k : *keys_)
            if (!k.of_host) text += k.path() + " = " + k.show(values_) + "\n";
        return text;
    }

  private:
    const std::vector<key<Settings>>* keys_;
    std::vector<key_name> names_;
    Settings values_;
    std::vector<std::pair<std::string, std::string>> origins_;
};

} // namespace halocline::config
