// SPDX-License-Identifier: Apache-2.0
// The exceptions that every layer shares. They keep their data as members; the text says what is wrong, with which
// value, and what would be right. Programs map them to exit codes: input_error 2, job_error 3, anything else 1.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace halocline {

/// Base of all exceptions of the library.
class error : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The caller asked for something impossible: a grid, a cut, a flag, a config value, a file.
class input_error : public error {
    using error::error;
};

/// The job can't continue: a rank died, a wait passed its deadline, another rank aborted.
class job_error : public error {
    using error::error;
};

/// A file that is missing, truncated, corrupted or not what it claims to be.
class file_error : public input_error {
  public:
    file_error(std::string path, std::string reason)
        : input_error("'" + path + "': " + reason), path_(std::move(path)), reason_(std::move(reason)) {}
    [[nodiscard]] const std::string& path() const { return path_; }
    /// The text without the file's name.
    [[nodiscard]] const std::string& reason() const { return reason_; }

  private:
    std::string path_, reason_;
};

} // namespace halocline
