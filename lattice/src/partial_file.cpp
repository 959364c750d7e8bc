// SPDX-License-Identifier: Apache-2.0
#include <halocline/lattice/partial_file.hpp>

#include "binary_file.hpp"

#include <halocline/base/error.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

namespace halocline::lattice {
namespace {

constexpr std::chrono::milliseconds between_looks{10};

std::string text_of(int code) { return std::generic_category().message(code); }

class descriptor {
  public:
    explicit descriptor(int number) : number_(number) {}
    descriptor(const descriptor&) = delete;
    descriptor& operator=(const descriptor&) = delete;
    ~descriptor() {
        if (number_ >= 0) ::close(number_);
    }
    [[nodiscard]] int number() const { return number_; }
    [[nodiscard]] int release() { return std::exchange(number_, -1); }

  private:
    int number_;
};

/// False: another run has the lock. File systems without locks (Lustre can be mounted that way) let everybody through.
bool lock(int file, int kind) {
    int code = 0;
    do code = ::flock(file, kind | LOCK_NB) == 0 ? 0 : errno;
    while (code == EINTR);
    return code != EWOULDBLOCK;
}

/// Does `name`, not followed if it is a link, still lead to this file?
bool leads_to(const std::string& name, int file) {
    struct stat opened {
    }, named{};
    return ::fstat(file, &opened) == 0 && ::lstat(name.c_str(), &named) == 0 && named.st_dev == opened.st_dev &&
           named.st_ino == opened.st_ino;
}

/// For the lock. Another user's file can often only be read, which is enough for that. -1: errno says why not.
int open_to_lock(const std::string& name) {
    constexpr int flags = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int file = ::open(name.c_str(), O_RDWR | O_CREAT | flags, 0666);
    if (file >= 0 || errno != EACCES) return file;
    file = ::open(name.c_str(), O_RDONLY | flags);
    if (file < 0) errno = EACCES;
    return file;
}

/// True if it can be written to, and that can't destroy anything of anybody else's.
bool is_fresh(int file) {
    struct stat status {};
    return (::fcntl(file, F_GETFL) & O_ACCMODE) == O_RDWR && ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
           status.st_size == 0 && status.st_nlink == 1;
}

/// Gives the file the permissions of the one whose place it takes, and these. Some file systems have none to give.
void keep_permissions(const std::string& path, int file, mode_t more) {
    struct stat older {};
    if (::lstat(path.c_str(), &older) == 0 && S_ISREG(older.st_mode)) ::fchmod(file, (older.st_mode & 07777) | more);
}

/// The kernel's list of locks has lines such as "3: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF".
std::string holder_of(int file) {
    struct stat status {};
    if (::fstat(file, &status) != 0) return "another run";
    char wanted[64];
    std::snprintf(wanted, sizeof wanted, "%02x:%02x:%llu", major(status.st_dev), minor(status.st_dev),
                  static_cast<unsigned long long>(status.st_ino));
    std::ifstream locks("/proc/locks");
    for (std::string number, kind, strength, mode, pid, place, rest;
         locks >> number >> kind >> strength >> mode >> pid >> place && std::getline(locks, rest);) {
        if (kind != "FLOCK" || place != wanted || pid.find_first_not_of("0123456789") != pid.npos || pid == "0")
            continue;
        std::string program;
        std::getline(std::ifstream("/proc/" + pid + "/comm"), program);
        return "process " + pid + (program.empty() ? "" : " (" + program + ")");
    }
    return "another run"; // on another host, or in another container
}

std::string folder_of(const std::string& path) {
    const std::string folder = std::filesystem::path(path).parent_path().string();
    return folder.empty() ? "." : folder;
}

[[noreturn]] void refuse(const std::string& path, const std::string& name, int held) {
    throw file_error(path, "is being written by " + holder_of(held) + ", as '" + name +
                               "': wait until it has ended, or give another name");
}

} // namespace

std::string link_target(const std::string& path) {
    constexpr int most_links = 40; // as in the kernel
    std::error_code none;
    // A device or a pipe, perhaps one of /proc/self/fd, where a link's text need not be a name.
    if (std::filesystem::exists(path, none) && !std::filesystem::is_regular_file(path, none)) return path;
    std::filesystem::path file = path;
    for (int links = 0; links < most_links; ++links) {
        const auto target = std::filesystem::read_symlink(file, none);
        if (none) return file.string();
        file = file.parent_path() / target;
    }
    return path;
}

std::string partial_name(const std::string& path) { return link_target(path) + ".partial"; }

std::string partial_writer(const std::string& path) {
    const descriptor file(::open(partial_name(path).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file.number() < 0) {
        if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return {};
        throw file_error(partial_name(path), "can't be opened to see whether a run is writing it: " + text_of(errno));
    }
    if (lock(file.number(), LOCK_SH)) return {};
    return holder_of(file.number());
}

partial_file::partial_file(const std::string& path) : path_(link_target(path)), name_(partial_name(path_)) {}

partial_file::~partial_file() {
    if (lock_ < 0) return;
    if (leads_to(name_, lock_)) ::unlink(name_.c_str()); // while it is locked: later the name may be another run's
    ::close(lock_);
}

std::string partial_file::identity() const {
    // An NFS client that opens a folder asks the server whether names in it have changed; otherwise it might, for a
    // minute, lead to the file that had this name before.
    const descriptor folder(::open(folder_of(name_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return binary_file::open_to_read(name_).identity();
}

void partial_file::create() {
    std::error_code none;
    if (std::filesystem::exists(path_, none) && !std::filesystem::is_regular_file(path_, none))
        throw input_error("'" + path_ + "' is no regular file: the new one would take its place");
    if (std::filesystem::is_symlink(path_, none)) throw file_error(path_, text_of(ELOOP));

    const auto end = std::chrono::steady_clock::now() + patience;
    for (;;) {
        descriptor file(open_to_lock(name_));
        const int code = file.number() < 0 ? errno : 0;
        if (code == 0 && !lock(file.number(), LOCK_EX)) {
            if (std::chrono::steady_clock::now() >= end) refuse(path_, name_, file.number());
            std::this_thread::sleep_for(between_looks);
            continue;
        }
        if (code == 0 && !leads_to(name_, file.number())) continue; // the run that held the lock has just ended
        if (code == 0 && is_fresh(file.number())) {
            lock_ = file.release();
            keep_permissions(path_, lock_, S_IRUSR | S_IWUSR); // before there is anything to read
            return;
        }
        // What can't be opened may be locked by the run that writes it; a link never is.
        if (code != 0 && code != ELOOP) throw file_error(name_, "can't be opened: " + text_of(code));
        // Left by a killed run. Not truncated: it may be a link to another file, or still be open in a rank of that
        // run.
        if (::unlink(name_.c_str()) != 0 && errno != ENOENT)
            throw file_error(name_, "is in the way: " + text_of(errno));
    }
}

void partial_file::publish() {
    if (!leads_to(name_, lock_))
        throw file_error(path_, "'" + name_ + "' was removed, or replaced by another run, while it was written");
    keep_permissions(path_, lock_, 0);
    if (std::rename(name_.c_str(), path_.c_str()) != 0)
        throw file_error(path_, "'" + name_ + "' can't be renamed to it: " + text_of(errno));
    ::close(std::exchange(lock_, -1));
    sync_folder(folder_of(path_)); // makes the rename itself durable
}

void write_text_file(const std::string& path, std::string_view text) {
    partial_file partial(path);
    partial.create();
    const binary_file file = binary_file::open_to_write(partial.name());
    file.write_text(0, std::string(text));
    file.sync();
    partial.publish();
}

} // namespace halocline::lattice
