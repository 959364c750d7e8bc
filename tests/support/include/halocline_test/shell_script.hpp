// SPDX-License-Identifier: Apache-2.0
// Files that can be run like programs.
#pragma once

#include <halocline_test/run_command.hpp>

#include <filesystem>
#include <fstream>
#include <string>

namespace halocline_test {

/// Writes a script for sh and returns its name.
inline std::string shell_script(const scratch_folder& folder, const std::string& name, const std::string& text) {
    const std::string path = folder / name;
    std::ofstream(path) << "#!/bin/sh\n" << text;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
}

/// A remote shell for halocline-run that reaches no other host: what is meant for any is run on this one.
inline std::string shell_of_this_host(const scratch_folder& folder) {
    return shell_script(folder, "shell", "shift\nexec \"$@\"\n");
}

} // namespace halocline_test
