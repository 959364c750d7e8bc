// SPDX-License-Identifier: Apache-2.0
// A file system that can't reserve space: fallocate() of the test program refuses. Included by one source file of a
// program.
#pragma once

#include <cerrno>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace halocline_test {

/// While it exists, fallocate() says that the file system can't do that.
class no_fallocate {
  public:
    no_fallocate() { now = this; }
    ~no_fallocate() { now = nullptr; }
    no_fallocate(const no_fallocate&) = delete;
    no_fallocate& operator=(const no_fallocate&) = delete;

    int asked = 0; ///< number of calls
    static inline no_fallocate* now = nullptr;
};

} // namespace halocline_test

extern "C" int fallocate(int file, int mode, off_t offset, off_t size) {
    if (halocline_test::no_fallocate::now) {
        ++halocline_test::no_fallocate::now->asked;
        errno = EOPNOTSUPP;
        return -1;
    }
    return static_cast<int>(::syscall(SYS_fallocate, file, mode, offset, size));
}
