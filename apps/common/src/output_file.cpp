// SPDX-License-Identifier: Apache-2.0
#include <halocline_app/output_file.hpp>
#include <halocline_app/write_all.hpp>

#include <halocline/base/error.hpp>
#include <halocline/config/reader.hpp>
#include <halocline/lattice/partial_file.hpp>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

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

std::string temporary_ending() { return "." + std::to_string(::getpid()) + ".tmp"; }

/// Removes a file when it is destroyed.
class removed_file {
  public:
    explicit removed_file(std::string name) : name_(std::move(name)) {}
    removed_file(const removed_file&) = delete;
    removed_file& operator=(const removed_file&) = delete;
    ~removed_file() { ::unlink(name_.c_str()); }

  private:
    std::string name_;
};

/// A partial file is replaced too, as if a killed run had left it.
void check_others(const std::string& flag, const std::string& path, const run_files& others,
                  const std::string& except = "") {
    const std::string partial = lattice::partial_name(path);
    const std::string* const same = others.flag_of(path, except);
    const std::string* const other = same != nullptr ? same : others.flag_of(partial, except);
    if (other != nullptr)
        throw input_error(flag + " " + path + ": is " + (same != nullptr ? "" : "written as '" + partial + "', ") +
                          "the file of " + *other + ", whose place it would take; give it another name");
}

/// To root too, who may write to every file, a file that nobody has permission to write to is one to keep.
bool is_write_protected(const std::string& path) {
    struct stat there {};
    if (::stat(path.c_str(), &there) != 0) return false;
    return (there.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) == 0 ||
           ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0;
}

/// What stands in the place of the file that will be written.
void check_place(const std::string& flag, const std::string& path) {
    const std::string target = lattice::link_target(path);
    std::error_code none;
    if (std::filesystem::is_symlink(target, none)) throw input_error(wrong(flag, path, std::strerror(ELOOP)));
    // The file would be replaced, not written to, so nothing else would heed its permissions.
    if (is_write_protected(target))
        throw input_error(wrong(flag, path, "it is write-protected; give another name, or change its permissions"));
}

/// check_place(); also makes an empty file beside the one that will be written, and returns its name.
[[nodiscard]] std::string check_file(const std::string& flag, const std::string& path) {
    check_place(flag, path);
    const std::string temporary = lattice::link_target(path) + temporary_ending();
    const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0) throw input_error(wrong(flag, path, std::strerror(errno)));
    ::close(file);
    return temporary;
}

std::string name_of(const comm::job& j, int rank) {
    return "rank " + std::to_string(rank) + " on " + j.members()[static_cast<std::size_t>(rank)].host;
}

/// On another rank than 0, which has made a file that ends like this beside the one that all will write.
void look_beside(const comm::job& j, const std::string& flag, const std::string& path, const std::string& ending) {
    const std::string seen = lattice::link_target(path) + ending;
    const int file = ::open(seen.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    const int why = errno;
    if (file >= 0) {
        ::close(file);
        return;
    }
    std::error_code none;
    throw input_error(wrong(flag, path,
                            name_of(j, j.rank()) + " can't open '" + std::filesystem::absolute(seen, none).string() +
                                "', which " + name_of(j, 0) + " has made: " + std::strerror(why) +
                                "; every rank writes a part, so give a name in a folder that all of them see"));
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

std::string folder_of(const std::string& path) {
    const std::filesystem::path folder = std::filesystem::path(lattice::link_target(path)).parent_path();
    return folder.empty() ? "." : folder.string();
}

/// Bytes on the disk that are free once a regular file is removed.
double bytes_freed_by(const std::string& path) {
    struct stat there {};
    const bool frees = ::lstat(path.c_str(), &there) == 0 && S_ISREG(there.st_mode) && there.st_nlink == 1;
    return frees ? 512.0 * static_cast<double>(there.st_blocks) : 0;
}

/// Bytes that a new file may have there, while an older one stays. None: its file system does not say.
std::optional<double> room_for(const std::string& path) {
    struct statvfs disk {};
    if (::statvfs(folder_of(path).c_str(), &disk) != 0 || disk.f_blocks == 0) return std::nullopt;
    // Root may use what is reserved for it.
    const auto blocks = ::geteuid() == 0 ? disk.f_bfree : disk.f_bavail;
    double room = static_cast<double>(blocks) * static_cast<double>(disk.f_frsize);
    room += bytes_freed_by(lattice::partial_name(path)); // what a killed run left is removed first
    return room;
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
    // Without `>>` standard output has a place of its own in its file: what is printed next would overwrite the text.
    struct stat file {
    }, standard{};
    if (::fstat(stream, &file) == 0 && S_ISREG(file.st_mode))
        for (const int output : {STDOUT_FILENO, STDERR_FILENO})
            if (::fstat(output, &standard) == 0 && standard.st_dev == file.st_dev && standard.st_ino == file.st_ino) {
                ::dup3(output, stream, O_CLOEXEC);
                break;
            }
    return stream;
}

/// What a file that ranks write must not be.
void check_kind(const std::string& flag, const std::string& path, const run_files& others) {
    refuse_dash(flag, path, false);
    check_others(flag, path, others);
    if (is_folder(path)) throw input_error(wrong(flag, path, "it is a folder"));
    if (is_stream(path)) throw input_error(wrong(flag, path, "it is no regular file"));
}

} // namespace

run_files::run_files() {
    if (const char* config = std::getenv(config::file_variable)) add("the config", config);
}

run_files& run_files::add(std::string flag, std::string path) {
    if (!path.empty()) files_.push_back({std::move(flag), std::move(path), {}});
    return *this;
}

run_files::identity run_files::identify(const std::string& path) {
    std::error_code none; // the file may not be there yet; relative names stay so unless it is
    const auto absolute = std::filesystem::absolute(lattice::link_target(path), none);
    identity is{std::filesystem::weakly_canonical(absolute, none).string(), {}};
    struct stat there {};
    if (::stat(path.c_str(), &there) == 0) is.node = {there.st_dev, there.st_ino};
    return is;
}

const std::string* run_files::flag_of(const std::string& path, const std::string& except) const {
    const identity wanted = identify(path);
    const auto same = std::ranges::find_if(files_, [&](const file& one) {
        if (!one.known) one.known = identify(one.path);
        return one.known->place == wanted.place || (wanted.node && one.known->node == wanted.node);
    });
    return same != files_.end() && same->flag != except ? &same->flag : nullptr;
}

void refuse_dash(const std::string& flag, const std::string& path, bool may_be_stream) {
    if (path != "-") return;
    throw input_error(flag + " -: names no file; standard output has the report. Name a file: " +
                      (may_be_stream ? "/dev/stdout adds to the report, " : "") + "./- is a file of that name");
}

void check_output(const program& p, const std::string& flag, const std::string& path, const run_files& others) {
    if (path.empty()) return;
    const comm::job& j = p.job();
    std::optional<removed_file> made;
    j.collectively([&] {
        if (p.rank() != 0) return;
        check_kind(flag, path, others);
        made.emplace(check_file(flag, path));
        check_partial(p, flag, path);
    });
    const std::string ending = j.broadcast(temporary_ending());
    j.collectively([&] {
        if (p.rank() != 0) look_beside(j, flag, path, ending);
    });
}

void check_outputs(const program& p, const std::string& flag, const std::vector<std::string>& paths,
                   const run_files& others) {
    if (paths.empty()) return;
    check_output(p, flag, paths.front(), others);
    constexpr int most_milliseconds = 20; // of a look, to a server perhaps
    const auto look = [&] {
        if (p.rank() != 0) return;
        for (const std::string& path : std::span(paths).subspan(1)) {
            check_kind(flag, path, others);
            check_place(flag, path);
            check_partial(p, flag, path);
        }
    };
    p.job().collectively(look, std::chrono::milliseconds(most_milliseconds * paths.size()));
}

void check_room(const comm::job& j, const std::string& flag, const std::string& path, std::int64_t bytes,
                const std::vector<std::string>& files) {
    if (path.empty()) return;
    j.collectively([&] {
        constexpr std::int64_t most_heads = 16384; // what else the file has: its records' heads, the text of a solution
        const std::int64_t each = bytes + most_heads;
        rlimit largest{}; // of a file, into which each rank writes its part
        if (::getrlimit(RLIMIT_FSIZE, &largest) == 0 && largest.rlim_cur < static_cast<rlim_t>(each))
            throw input_error(wrong(flag, path,
                                    (files.size() == 1 ? "it takes" : "each takes") +
                                        (" up to " + std::to_string(each)) + " bytes, and a file of " +
                                        name_of(j, j.rank()) + " may have " + std::to_string(largest.rlim_cur) +
                                        "; raise 'ulimit -f'"));
        if (j.rank() != 0) return;
        const std::optional<double> room = room_for(path);
        if (!room) return;
        double free = *room;
        for (const std::string& file : files) {
            free -= static_cast<double>(each);
            if (free < 0) break;
            free += bytes_freed_by(lattice::link_target(file));
        }
        if (free >= 0) return;
        char all[32];
        std::snprintf(all, sizeof all, "%.0f", static_cast<double>(each) * static_cast<double>(files.size()));
        throw input_error(wrong(flag, path,
                                (files.size() == 1 ? "it takes" : std::to_string(files.size()) + " such files take") +
                                    " up to " + all + " bytes, and " +
                                    std::to_string(static_cast<std::int64_t>(*room)) + " are free in '" +
                                    folder_of(path) + "'; make room there, or give a name elsewhere"));
    });
}

text_output::text_output(const program& p, const std::string& flag, const std::string& path, const run_files& others)
    : program_(p), flag_(flag), path_(path) {
    if (path_.empty()) return;
    p.job().collectively([&] {
        if (p.rank() == 0) open(others);
    });
}

text_output::~text_output() {
    if (stream_ >= 0) ::close(stream_);
    if (!lost_.empty()) program_.lose_output(std::move(lost_));
}

void text_output::open(const run_files& others) {
    refuse_dash(flag_, path_, true);
    if (is_folder(path_)) throw input_error(wrong(flag_, path_, "it is a folder"));
    std::error_code none;
    if (is_stream(path_)) {
        if (std::filesystem::is_regular_file(path_, none)) check_others(flag_, path_, others, flag_);
        stream_ = open_stream(flag_, path_);
        return;
    }
    check_others(flag_, path_, others, flag_);
    const removed_file made(check_file(flag_, path_));
    check_partial(program_, flag_, path_);
}

void text_output::write(const std::string& text) {
    if (path_.empty() || program_.rank() != 0) return;
    if (stream_ >= 0) {
        if (const int why = write_all(stream_, text); why != 0)
            program_.lose_output(wrong(flag_, path_, std::strerror(why)));
        return;
    }
    written_ += text;
    try {
        lattice::write_text_file(path_, written_);
        lost_.clear();
    } catch (const input_error& e) {
        lost_ = flag_ + ": " + e.what();
    }
}

} // namespace halocline::app
