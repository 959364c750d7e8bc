// SPDX-License-Identifier: Apache-2.0
// Runs a program as a user would, and keeps its output.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace halocline_test {

struct command_result {
    int exit_code = -1;
    std::string out, err;
    double seconds = 0;
};

/// A folder that is removed when the test ends.
class scratch_folder {
  public:
    explicit scratch_folder(const std::filesystem::path& parent = std::filesystem::temp_directory_path()) {
        std::string name = (parent / "halocline-test-XXXXXX").string();
        if (!::mkdtemp(name.data())) std::abort();
        path_ = name;
    }
    ~scratch_folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    scratch_folder(const scratch_folder&) = delete;
    scratch_folder& operator=(const scratch_folder&) = delete;
    [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }

  private:
    std::filesystem::path path_;
};

inline std::string read_text(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

/// Runs `command` through the shell, for at most `limit_seconds`.
inline command_result run_command(const std::string& command, int limit_seconds = 120) {
    const scratch_folder scratch;
    const auto begin = std::chrono::steady_clock::now();
    const int status = std::system(("timeout -k 2 " + std::to_string(limit_seconds) + " " + command + " </dev/null >'" +
                                    (scratch / "out") + "' 2>'" + (scratch / "err") + "'")
                                       .c_str());
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), read_text(scratch / "out"),
            read_text(scratch / "err"), seconds.count()};
}

} // namespace halocline_test
