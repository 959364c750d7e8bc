// SPDX-License-Identifier: Apache-2.0
// A disk that damages what it stores: fsync() of the test program changes a byte of the file first. Included by one
// source file of a program.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

namespace halocline_test {

/// While it exists, the next fsync() but `skipped` changes the byte at `offset`; of the end if `offset` is negative.
class damaging_fsync {
  public:
    damaging_fsync(int skipped, off_t offset) : skipped_(skipped), offset_(offset) { now = this; }
    ~damaging_fsync() { now = nullptr; }
    damaging_fsync(const damaging_fsync&) = delete;
    damaging_fsync& operator=(const damaging_fsync&) = delete;

    void damage(int file) {
        if (skipped_-- != 0) return;
        const off_t at = offset_ < 0 ? ::lseek(file, 0, SEEK_END) + offset_ : offset_;
        unsigned char byte = 0;
        done = ::pread(file, &byte, 1, at) == 1 && (byte ^= 1, ::pwrite(file, &byte, 1, at) == 1);
    }

    bool done = false;
    static inline damaging_fsync* now = nullptr;

  private:
    int skipped_;
    off_t offset_;
};

} // namespace halocline_test

extern "C" int fsync(int file) {
    if (halocline_test::damaging_fsync::now) halocline_test::damaging_fsync::now->damage(file);
    return static_cast<int>(::syscall(SYS_fsync, file));
}
