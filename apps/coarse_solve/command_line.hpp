// SPDX-License-Identifier: Apache-2.0
// The command line of coarse_solve; its flags are fixed.
#pragma once

#include <halocline_app/main.hpp>
#include <halocline_app/settings.hpp>

#include <string>

namespace halocline::app {

struct command_line {
    settings_reader reader; ///< config file, environment and flags, already merged
    std::string config;     ///< file that settings were read from; empty: none
    bool dry_run = false;
    std::string json;     ///< empty: none
    std::string solution; ///< empty: none
};

/// Err: input_error naming the flag or key, its value and what would be right.
command_line read_command_line(const program& p, int argc, const char* const* argv);

} // namespace halocline::app
