// SPDX-License-Identifier: Apache-2.0
#include <halocline_app/output_file.hpp>
#include <halocline_app/write_all.hpp>

#include <halocline/base/error.hpp>
#include <halocline/config/reader.hpp>
#include <halocline/lattice/partial_file.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace halocline::app {
namespace {

std::string wrong(const std::string& flag, const std::string& path, const std::string& why) {
    return flag + " " + path + ": can't be written: " + why;
}

/// /dev/stdout, /dev/fd/1, /proc/self/fd/1, or a link to such a name: what the process has opened, a file perhaps.
bool is_open_file(std::filesystem::path path) {
    constexpr int most_links = 40; // as in the kernel
    std::error_code none;
    for (int links = 0; links < most_links; ++links) {
        path = std::filesystem::absolute(path, none);
        const auto folder = std::filesystem::canonical(path.parent_path(), none);
        if (none) return false;
        if (folder.string().starts_with("/proc/") && folder.filename() == "fd") return true;
        const auto target = std::filesystem::read_symlink(path, none);
        if (none) return false;
        path = folder / target;
    }
    return false;
}

/// What is opened before the work and written to directly: replacing a pipe or a device with a file would destroy it,
/// and no file is to be made in /dev by a misspelt name.
bool is_stream(const std::string& path) {
    if (is_open_file(path)) return true;
    std::error_code none;
    const auto status = std::filesystem::status(path, none);
    if (std::filesystem::exists(status)) return !std::filesystem::is_regular_file(status);
    return std::filesystem::path(lattice::link_target(path)).lexically_normal().parent_path() == "/dev";
}

bool is_folder(const std::string& path) {
    std::error_code none;
    return std::filesystem::is_directory(path, none);
}

std::string temporary_beside(const std::string& path) { return path + "." + std::to_string(::getpid()) + ".tmp"; }

bool same_file(const std::string& a, const std::string& b) {
    if (a.empty() || b.empty()) return false;
    std::error_code none;
    const auto place = [&](const std::string& path) { // which may not be there yet; relative ones stay so unless it is
        return std::filesystem::weakly_canonical(std::filesystem::absolute(lattice::link_target(path), none), none);
    };
    return std::filesystem::equivalent(a, b, none) || place(a) == place(b);
}

/// A partial file is replaced too, as if a killed run had left it. Every program reads the file of $HALOCLINE_CONFIG.
void check_others(const std::string& flag, const std::string& path, flagged_files others) {
    if (const char* config = std::getenv(config::file_variable)) others.emplace_back("the config", config);
    for (const auto& [other, file] : others) {
        const std::string partial = lattice::partial_name(path);
        const bool same = same_file(path, file);
        if (same || same_file(partial, file))
            throw input_error(flag + " " + path + ": is " + (same ? "" : "written as '" + partial + "', ") +
                              "the file of " + other + ", whose place it would take; give it another name");
    }
}

void check_file(const std::string& flag, const std::string& path) {
    const std::string target = lattice::link_target(path), temporary = temporary_beside(target);
    std::error_code none;
    if (std::filesystem::is_symlink(target, none)) throw input_error(wrong(flag, path, std::strerror(ELOOP)));
    const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) throw input_error(wrong(flag, path, std::strerror(errno)));
    ::close(file);
    ::unlink(temporary.c_str());
}

/// Leftovers of a run that was killed while it wrote the same file are replaced at the end.
void check_partial(const program& p, const std::string& flag, const std::string& path) {
    const std::string partial = lattice::partial_name(path);
    if (is_folder(partial)) throw input_error(wrong(flag, path, "'" + partial + "' is a folder"));
    if (const std::string writer = lattice::partial_writer(path); !writer.empty())
        throw input_error(
            wrong(flag, path,
                  writer + " is writing it now, as '" + partial + "'; wait until it has ended, or give another name"));
    std::error_code none;
    if (std::filesystem::exists(std::filesystem::symlink_status(partial, none)))
        p.print("warning: '" + partial + "' is there: a run was ended while it wrote " + path +
                "; it will be replaced");
}

/// Pre: not a folder.  Err: input_error: nobody reads the pipe, …
int open_stream(const std::string& flag, const std::string& path) {
    // Without O_NONBLOCK a pipe without a reader would block the job here.
    const int stream = ::open(path.c_str(), O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (stream < 0) {
        const int why = errno;
        const bool unread = why == ENXIO && std::filesystem::is_fifo(path);
        throw input_error(wrong(flag, path, unread ? "nobody reads this pipe" : std::strerror(why)));
    }
    ::fcntl(stream, F_SETFL, ::fcntl(stream, F_GETFL) & ~O_NONBLOCK);
    return stream;
}

} // namespace

void refuse_dash(const std::string& flag, const std::string& path, bool may_be_stream) {
    if (path != "-") return;
    throw input_error(flag + " -: names no file; standard output has the report. Name a file: " +
                      (may_be_stream ? "/dev/stdout adds to the report, " : "") + "./- is a file of that name");
}

void check_output(const program& p, const std::string& flag, const std::string& path, const flagged_files& others) {
    if (path.empty()) return;
    p.job().collectively([&] {
        if (p.rank() != 0) return;
        refuse_dash(flag, path, false);
        check_others(flag, path, others);
        if (is_folder(path)) throw input_error(wrong(flag, path, "it is a folder"));
        if (is_stream(path)) throw input_error(wrong(flag, path, "it is no regular file"));
        check_file(flag, path);
        check_partial(p, flag, path);
    });
}

text_output::text_output(const program& p, const std::string& flag, const std::string& path,
                         const flagged_files& others)
    : program_(p), flag_(flag), path_(path) {
    if (path_.empty()) return;
    p.job().collectively([&] {
        if (p.rank() == 0) open(others);
    });
}

text_output::~text_output() {
    if (stream_ >= 0) ::close(stream_);
}

void text_output::open(const flagged_files& others) {
    refuse_dash(flag_, path_, true);
    if (is_folder(path_)) throw input_error(wrong(flag_, path_, "it is a folder"));
    std::error_code none;
    if (is_stream(path_)) {
        if (std::filesystem::is_regular_file(path_, none)) check_others(flag_, path_, others);
        stream_ = open_stream(flag_, path_);
        return;
    }
    check_others(flag_, path_, others);
    check_file(flag_, path_);
    check_partial(program_, flag_, path_);
}

void text_output::write(const std::string& text) const {
    if (path_.empty() || program_.rank() != 0) return;
    if (stream_ >= 0) {
        if (const int why = write_all(stream_, text); why != 0)
            program_.lose_output(wrong(flag_, path_, std::strerror(why)));
        return;
    }
    try {
        lattice::write_text_file(path_, text);
    } catch (const input_error& e) {
        program_.lose_output(flag_ + ": " + e.what());
    }
}

} // namespace halocline::app
