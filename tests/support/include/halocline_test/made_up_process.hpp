// SPDX-License-Identifier: Apache-2.0
// A process with control groups that exist only in a test's folder.
#pragma once

#include <halocline_test/run_command.hpp>

#include <filesystem>
#include <fstream>
#include <string>

namespace halocline_test {

/// The files that describe a process in /proc, and the folders of its control groups.
class made_up_process {
  public:
    /// Adds a line of /proc/self/cgroup.
    void is_in(const std::string& line) const { append("cgroup", line); }
    /// Makes control groups visible from `root` downwards; in the format of mountinfo, with \040 for a space.
    void mount(const std::string& root, const std::string& point, const std::string& kind_and_options) const {
        append("mountinfo",
               "31 23 0:28 " + root + " " + (folder_ / "") + point + " rw,nosuid shared:9 - " + kind_and_options);
    }
    void write(const std::string& file, const std::string& text) const {
        const std::filesystem::path path = folder_ / file;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path) << text;
    }
    /// What the functions that read /proc/self are given instead.
    [[nodiscard]] std::string folder() const { return folder_ / ""; }

  private:
    void append(const std::string& file, const std::string& line) const {
        std::ofstream(folder_ / file, std::ios::app) << line << "\n";
    }
    scratch_folder folder_;
};

} // namespace halocline_test
