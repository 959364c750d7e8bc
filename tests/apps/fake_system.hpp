// SPDX-License-Identifier: Apache-2.0
// Scripts among tools that a test chooses.
#pragma once

#include "programs.hpp"

#include <filesystem>
#include <fstream>
#include <string>

namespace halocline_test {

/// A copy of the scripts, on a system of a few tools on which nothing can be installed, but by root.
class fake_system {
  public:
    fake_system() {
        std::filesystem::create_directories(folder_ / "scripts");
        const auto recursive = std::filesystem::copy_options::recursive;
        std::filesystem::copy(HALOCLINE_SOURCE "/scripts/bench", folder_ / "scripts/bench", recursive);
        for (const std::string script : {"install-dependencies.sh", "build.sh", "test.sh", "bench.sh"})
            std::filesystem::copy_file(HALOCLINE_SOURCE "/scripts/" + script, folder_ / ("scripts/" + script));
        for (const std::string tool : {"bash", "sed", "grep", "dirname", "readlink", "mkdir", "xargs", "cat"})
            link(tool);
        write("dpkg-query", "case \" $MISSING \" in *\" $3 \"*) exit 1;; esac; echo install ok installed");
        write("id", "echo $USER_ID");
        write("sudo", "exit 1");
        write("apt-get", "[ $1 = update ] || echo \"$*\" >>" + (folder_ / "installed"));
    }
    /// The machine's tool is there, too.
    void link(const std::string& tool) const {
        const std::string path = shell("command -v " + tool).out;
        std::filesystem::create_symlink(path.substr(0, path.find('\n')), folder_ / tool);
    }
    void write(const std::string& name, const std::string& text) const {
        std::filesystem::create_directories(std::filesystem::path(folder_ / name).parent_path());
        std::filesystem::remove(folder_ / name); // a link: the machine's own tool must not be written
        std::ofstream(folder_ / name) << "#!/bin/sh\n" << text << "\n";
        std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
    }
    [[nodiscard]] std::string folder() const { return folder_ / ""; }
    void remove(const std::string& name) const { std::filesystem::remove(folder_ / name); }
    /// Runs a script where these packages are not installed.  `variables`: more of the environment, NAME=VALUE.
    [[nodiscard]] command_result run(const std::string& script, const std::string& missing, int user = 1000,
                                     const std::string& variables = "") const {
        return run_command("env -u CXX -u HALOCLINE_WITHOUT_MPI -u HALOCLINE_WITHOUT_PACKAGES PATH=" + (folder_ / "") +
                           " 'MISSING=" + missing + "' USER_ID=" + std::to_string(user) + " " + variables + " bash " +
                           (folder_ / "scripts/") + script);
    }
    /// What root would have installed, a line for each time.
    [[nodiscard]] std::string installed() const { return read_text(folder_ / "installed"); }

  private:
    scratch_folder folder_;
};

} // namespace halocline_test
