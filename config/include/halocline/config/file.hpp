// SPDX-License-Identifier: Apache-2.0
// A config file (TOML) as a list of its sections, keys and values, before they are interpreted.
#pragma once

#include <halocline/config/config_error.hpp>

#include <string>
#include <vector>

namespace halocline::config {

/// One key of a file and its value, as written on a command line: lists of names separated by ',', lists of whole
/// numbers by '.'.
struct file_entry {
    std::string name, text;
    std::string where; ///< FILE:LINE:COLUMN
    bool is_list = false;
    std::string wrong{}; ///< what was expected, if the value is of a kind without such a text: a table, a date
};

/// [name], or the n-th [[name]] as "name.n", counted from 0. Keys before the first section belong to one named "".
struct file_section {
    std::string name, where;
    std::vector<file_entry> entries;
};

/// Err: config_error with the place in the file; also if it is larger than 1 MiB, not a regular file, or has a key of
/// many parts.
[[nodiscard]] std::vector<file_section> read_file(const std::string& path);

} // namespace halocline::config
