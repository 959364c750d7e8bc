// SPDX-License-Identifier: Apache-2.0
// A file of results, opened before the measuring: a name that can't be written is told then, and a full disk at its end.
#pragma once

#include <halocline/base/error.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

namespace halocline::bench {

class output_file {
  public:
    /// No file.
    output_file() = default;
    /// "": no file.  Err: input_error.
    explicit output_file(std::string path) : path_(std::move(path)) {
        if (path_.empty()) return;
        file_ = std::fopen(path_.c_str(), "w");
        if (file_ == nullptr) throw input_error("can't write '" + path_ + "': " + std::strerror(errno));
    }
    output_file(output_file&& other) noexcept
        : path_(std::move(other.path_)), file_(std::exchange(other.file_, nullptr)) {}
    output_file& operator=(output_file&& other) noexcept {
        std::swap(path_, other.path_);
        std::swap(file_, other.file_);
        return *this;
    }
    ~output_file() {
        if (file_ != nullptr) std::fclose(file_);
    }

    /// nullptr: no file.
    [[nodiscard]] std::FILE* stream() const { return file_; }
    /// All is written.  Err: error with the name and the reason.
    void close() {
        if (file_ == nullptr) return;
        const bool failed = std::fflush(file_) != 0 || std::ferror(file_) != 0;
        const int why = errno;
        const bool lost = std::fclose(std::exchange(file_, nullptr)) != 0;
        if (failed || lost) throw error("'" + path_ + "' can't be written: " + std::strerror(failed ? why : errno));
    }

  private:
    std::string path_;
    std::FILE* file_ = nullptr;
};

} // namespace halocline::bench
