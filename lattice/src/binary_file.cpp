// SPDX-License-Identifier: Apache-2.0
#include "binary_file.hpp"

#include <halocline/base/error.hpp>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

namespace halocline::lattice {

std::string to_string(uint128 value) {
    std::string digits;
    do digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
    while ((value /= 10) != 0);
    return digits;
}

binary_file::binary_file(const std::string& path, int flags) : path_(path) {
    do descriptor_ = ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK);
    while (descriptor_ < 0 && errno == EINTR);
    if (descriptor_ < 0) fail("can't be opened", errno);

    struct stat status {};
    const int code = ::fstat(descriptor_, &status) == 0 ? 0 : errno;
    if (code != 0 || !S_ISREG(status.st_mode)) {
        ::close(std::exchange(descriptor_, -1)); // because a constructor that throws runs no destructor
        if (code != 0) fail("can't be examined", code);
        throw file_error(path_, "is not a regular file");
    }
    size_ = static_cast<std::uint64_t>(status.st_size);
    inode_ = status.st_ino;
}

binary_file binary_file::open_to_read(const std::string& path) { return {path, O_RDONLY}; }
binary_file binary_file::open_to_write(const std::string& path) { return {path, O_WRONLY}; }

binary_file::binary_file(binary_file&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_),
      inode_(other.inode_) {}

binary_file::~binary_file() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

void binary_file::fail(const std::string& action, int code) const {
    throw file_error(path_, action + ": " + std::generic_category().message(code));
}

void binary_file::read(std::uint64_t offset, std::span<std::byte> to) const {
    while (!to.empty()) {
        const ssize_t got = ::pread(descriptor_, to.data(), to.size(), static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) fail("reading at byte " + std::to_string(offset) + " failed", errno);
        if (got == 0)
            throw file_error(path_, "ends at byte " + std::to_string(offset) + ", " + std::to_string(to.size()) +
                                        " bytes too early");
        to = to.subspan(static_cast<std::size_t>(got));
        offset += static_cast<std::uint64_t>(got);
    }
}

std::string binary_file::read_text(std::uint64_t offset, std::size_t length) const {
    std::string text(length, '\0');
    read(offset, std::as_writable_bytes(std::span(text)));
    return text;
}

void binary_file::write(std::uint64_t offset, std::span<const std::byte> from) const {
    while (!from.empty()) {
        const ssize_t put = ::pwrite(descriptor_, from.data(), from.size(), static_cast<off_t>(offset));
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) fail("writing at byte " + std::to_string(offset) + " failed", errno);
        from = from.subspan(static_cast<std::size_t>(put));
        offset += static_cast<std::uint64_t>(put);
    }
}

void binary_file::write_text(std::uint64_t offset, const std::string& text) const {
    write(offset, std::as_bytes(std::span(text)));
}

void binary_file::expect(std::uint64_t offset, std::span<const std::byte> written) const {
    std::vector<std::byte> found(written.size());
    read(offset, found);
    const auto differs = std::ranges::mismatch(found, written).in1;
    if (differs != found.end())
        throw file_error(path_, "read back, byte " +
                                    std::to_string(offset + static_cast<std::uint64_t>(differs - found.begin())) +
                                    " differs from what was written");
}

void binary_file::expect_text(std::uint64_t offset, const std::string& written) const {
    expect(offset, std::as_bytes(std::span(written)));
}

void binary_file::reserve(std::uint64_t bytes) const {
    const auto result_of = [](auto call) {
        int code = 0;
        do code = call() == 0 ? 0 : errno;
        while (code == EINTR);
        return code;
    };
    const auto size = static_cast<off_t>(bytes);
    int code = result_of([&] { return ::fallocate(descriptor_, 0, 0, size); });
    // Where the file system reserves nothing, posix_fallocate() would write to each block, which takes minutes for a
    // large file, while other ranks wait. Then the file only gets its size, and a full disk is noticed by write().
    if (code == EOPNOTSUPP || code == ENOSYS) code = result_of([&] { return ::ftruncate(descriptor_, size); });
    if (code != 0) fail("can't reserve " + std::to_string(bytes) + " bytes", code);
}

void binary_file::sync() const {
    int code = 0;
    do code = ::fsync(descriptor_);
    while (code != 0 && errno == EINTR);
    if (code != 0) fail("can't be flushed to disk", errno);
}

void binary_file::drop_cache() const { ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED); }

std::string binary_file::identity() const {
    struct statfs system {};
    const bool fuse = ::fstatfs(descriptor_, &system) == 0 && system.f_type == FUSE_SUPER_MAGIC;
    return (fuse ? "a file" : "inode " + std::to_string(inode_)) + " of " + std::to_string(size_) + " bytes";
}

void sync_folder(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;
    ::fsync(descriptor);
    ::close(descriptor);
}

} // namespace halocline::lattice
