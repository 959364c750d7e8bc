// SPDX-License-Identifier: Apache-2.0
// A disk that damages what it stores, while the memory of the system still has it: posix_fadvise() of the test program,
// by which a file is told to be read from the disk, changes a byte of the file first. Included by one source file of a
// program.
#pragma once

#include <fcntl.h>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>

namespace halocline_test {

/// While it exists, the next POSIX_FADV_DONTNEED but `skipped` changes the byte at `offset`; of the end if `offset` is
/// negative. What was not flushed to disk before would not be read from there.
class damaging_disk {
  public:
    damaging_disk(int skipped, off_t offset) : skipped_(skipped), offset_(offset) { now = this; }
    ~damaging_disk() { now = nullptr; }
    damaging_disk(const damaging_disk&) = delete;
    damaging_disk& operator=(const damaging_disk&) = delete;

    void damage(int descriptor) {
        if (!flushed || skipped_-- != 0) return;
        const int file = ::open(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), O_RDWR);
        const off_t at = offset_ < 0 ? ::lseek(file, 0, SEEK_END) + offset_ : offset_;
        unsigned char byte = 0;
        done = ::pread(file, &byte, 1, at) == 1 && (byte ^= 1, ::pwrite(file, &byte, 1, at) == 1);
        ::close(file);
    }

    bool flushed = false, done = false;
    static inline damaging_disk* now = nullptr;

  private:
    int skipped_;
    off_t offset_;
};

} // namespace halocline_test

extern "C" int fsync(int file) {
    const auto result = static_cast<int>(::syscall(SYS_fsync, file));
    if (halocline_test::damaging_disk::now) halocline_test::damaging_disk::now->flushed = true;
    return result;
}
extern "C" int posix_fadvise(int file, off_t, off_t, int) noexcept {
    if (halocline_test::damaging_disk::now) halocline_test::damaging_disk::now->damage(file);
    return 0;
}
