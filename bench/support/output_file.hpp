// SPDX-License-Identifier: Apache-2.0
// A file of results, opened before measuring: a name that can't be written is reported then, and a full disk at the
// end.
#pragma once

#include <halocline/base/error.hpp>
#include <halocline_app/main.hpp>
#include <halocline_app/output_file.hpp>

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
    /// `path` as given by `flag`; "": no file.  Err: input_error.
    output_file(const std::string& flag, std::string path) : path_(std::move(path)) {
        if (path_.empty()) return;
        app::refuse_dash(flag, path_, true);
        file_ = std::fopen(path_.c_str(), "w");
        if (file_ == nullptr) throw input_error("can't write '" + path_ + "': " + std::strerror(errno));
    }
    output_file(output_file&& other) noexcept
        : path_(std::move(other.path_)), file_(std::exchange(other.file_, nullptr)), why_(other.why_) {}
    output_file& operator=(output_file&& other) noexcept {
        std::swap(path_, other.path_);
        std::swap(file_, other.file_);
        std::swap(why_, other.why_);
        return *this;
    }
    ~output_file() {
        if (file_ != nullptr) std::fclose(file_);
    }

    /// nullptr if there is no file.
    [[nodiscard]] std::FILE* stream() const { return file_; }
    /// Everything is written, or recorded as lost output of the program.
    void close(const app::program& p) {
        if (file_ == nullptr) return;
        flush();
        if (std::fclose(std::exchange(file_, nullptr)) != 0 && why_ == 0) why_ = errno;
        if (why_ != 0) p.lose_output("'" + path_ + "' can't be written: " + std::strerror(why_));
    }
    /// Makes what was written so far readable; close() reports failures.
    void flush() {
        if (file_ != nullptr && std::fflush(file_) != 0 && why_ == 0) why_ = errno;
    }

  private:
    std::string path_;
    std::FILE* file_ = nullptr;
    int why_ = 0; // errno of the first loss
};

} // namespace halocline::bench
