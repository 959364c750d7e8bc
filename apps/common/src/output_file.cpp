// SPDX-License-Identifier: Apache-2.0
#include <halocline_app/output_file.hpp>

#include <halocline/base/error.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace halocline::app {
namespace {

/// A pipe or a device (/dev/null, /dev/stdout, whatever that is redirected to) is written to; a file put in its place
/// would destroy it.
bool is_stream(const std::string& path) {
    if (path.starts_with("/dev/") || path.starts_with("/proc/")) return true;
    std::error_code none;
    const auto status = std::filesystem::status(path, none);
    return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

std::string temporary_beside(const std::string& path) { return path + "." + std::to_string(::getpid()) + ".tmp"; }

void check(const std::string& flag, const std::string& path, output_kind kind) {
    const std::string wrong = flag + " " + path + ": can't be written: ";
    if (std::filesystem::is_directory(path)) throw input_error(wrong + "it is a folder");
    if (is_stream(path)) {
        if (kind == output_kind::file) throw input_error(wrong + "it is no regular file");
        return;
    }
    const std::string temporary = temporary_beside(path);
    const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) throw input_error(wrong + std::strerror(errno));
    ::close(file);
    ::unlink(temporary.c_str());
}

void write(const std::string& path, const std::string& text) {
    const bool stream = is_stream(path);
    const std::string temporary = stream ? path : temporary_beside(path);
    {
        std::ofstream out(temporary, std::ios::binary | (stream ? std::ios::app : std::ios::trunc));
        out << text;
        if (!out.flush()) {
            const std::string why = std::strerror(errno);
            if (!stream) ::unlink(temporary.c_str());
            throw file_error(path, "can't be written: " + why);
        }
    }
    if (stream) return;
    std::error_code failure;
    std::filesystem::rename(temporary, path, failure);
    if (failure) {
        ::unlink(temporary.c_str());
        throw file_error(path, failure.message());
    }
}

} // namespace

void check_output(const comm::job& j, const std::string& flag, const std::string& path, output_kind kind) {
    if (path.empty()) return;
    j.collectively([&] {
        if (j.rank() == 0) check(flag, path, kind);
    });
}

void write_output(const comm::job& j, const std::string& path, const std::string& text) {
    if (path.empty()) return;
    j.collectively([&] {
        if (j.rank() == 0) write(path, text);
    });
}

} // namespace halocline::app
