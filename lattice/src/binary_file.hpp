// SPDX-License-Identifier: Apache-2.0
// Files by offset: reads and writes that are complete or throw, and numbers of a given byte order.
// Private to lattice/.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace halocline::lattice {

/// Wide enough for any product of sizes that a file may claim.
__extension__ typedef unsigned __int128 uint128;
std::string to_string(uint128 value);

/// An open file descriptor.  Err: file_error with the system's reason.
class binary_file {
  public:
    /// Only regular files: a pipe or a device has no size and could block forever.
    static binary_file open_to_read(const std::string& path);
    /// It can't be read through what this returns: of a file that is open for both, an NFS client reads each page of
    /// which a part is written, and sends the whole page, with what was there before in the place of what another host
    /// has written meanwhile.
    static binary_file open_to_write(const std::string& path);
    binary_file(binary_file&& other) noexcept;
    binary_file& operator=(binary_file&&) = delete;
    ~binary_file();

    [[nodiscard]] const std::string& path() const { return path_; }
    /// Bytes in the file when it was opened.
    [[nodiscard]] std::uint64_t size() const { return size_; }
    /// Text that is the same on all hosts that see this file, and another for most others: inode and size. FUSE may
    /// give each host its own inodes; there only the size tells.
    [[nodiscard]] std::string identity() const;
    /// Err: file_error if the file ends before the last byte.
    void read(std::uint64_t offset, std::span<std::byte> to) const;
    [[nodiscard]] std::string read_text(std::uint64_t offset, std::size_t length) const;
    void write(std::uint64_t offset, std::span<const std::byte> from) const;
    void write_text(std::uint64_t offset, const std::string& text) const;
    /// Err: file_error unless the file holds these bytes there.
    void expect(std::uint64_t offset, std::span<const std::byte> written) const;
    void expect_text(std::uint64_t offset, const std::string& written) const;
    /// Makes the file this long, and reserves its disk space, so that a full disk is noticed now; if the file system
    /// can't, writing will notice it.  Pre: the file is not longer.
    void reserve(std::uint64_t bytes) const;
    /// Returns once everything is on disk.
    void sync() const;
    /// What is read next comes from the disk or the server, if what was written is there; where the file system keeps
    /// files in memory, from there.
    void drop_cache() const;

  private:
    binary_file(const std::string& path, int flags);
    [[noreturn]] void fail(const std::string& action, int code) const;

    std::string path_;
    int descriptor_ = -1;
    std::uint64_t size_ = 0, inode_ = 0;
};

/// Makes names in a folder (a rename) durable, unless the file system can't.
void sync_folder(const std::string& path);

template <class Word>
constexpr Word reverse_bytes(Word value) {
    if constexpr (sizeof(Word) == 2)
        return __builtin_bswap16(value);
    else if constexpr (sizeof(Word) == 4)
        return __builtin_bswap32(value);
    else
        return __builtin_bswap64(value);
}

/// An unsigned integer of the given byte order.
template <class Word>
Word load(const void* from, bool big_endian) {
    Word value;
    std::memcpy(&value, from, sizeof value);
    return big_endian == (std::endian::native == std::endian::big) ? value : reverse_bytes(value);
}
template <class Word>
void store(void* to, Word value, bool big_endian) {
    if (big_endian != (std::endian::native == std::endian::big)) value = reverse_bytes(value);
    std::memcpy(to, &value, sizeof value);
}

/// Stored numbers of 4 or 8 bytes each -> doubles.
inline void load_reals(const std::byte* from, int count, int real_bytes, bool big_endian, double* to) {
    for (int k = 0; k < count; ++k, from += real_bytes)
        to[k] = real_bytes == 8 ? std::bit_cast<double>(load<std::uint64_t>(from, big_endian))
                                : double{std::bit_cast<float>(load<std::uint32_t>(from, big_endian))};
}
/// Doubles -> stored numbers of 8 bytes each.
inline void store_reals(const double* from, int count, bool big_endian, std::byte* to) {
    for (int k = 0; k < count; ++k, to += sizeof(double)) store(to, std::bit_cast<std::uint64_t>(from[k]), big_endian);
}

} // namespace halocline::lattice
