// SPDX-License-Identifier: Apache-2.0
// Hosts that share a page of a file on NFS: pwrite() of the test program may also write what its host had of the page
// before. Included by one source file of a program whose ranks are threads.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <fcntl.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace halocline_test {

/// While it exists, the thread in which it was made writes last, as far as others do not wait for it, and with zeros
/// before its first byte.
class page_of_two_hosts {
  public:
    page_of_two_hosts() { now = this; }
    ~page_of_two_hosts() { now = nullptr; }
    page_of_two_hosts(const page_of_two_hosts&) = delete;
    page_of_two_hosts& operator=(const page_of_two_hosts&) = delete;

    void before_write(int file, off_t offset) {
        if (destroyed) return;
        const int reads_before = reads;
        for (int i = 0; i < 100 && reads == reads_before; ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        constexpr std::array<char, 64> zeros{};
        const auto bytes = std::min<off_t>(static_cast<off_t>(zeros.size()), offset % 4096);
        destroyed = bytes > 0 && ::syscall(SYS_pwrite64, file, zeros.data(), bytes, offset - bytes) == bytes;
    }

    bool destroyed = false;
    static inline std::atomic<int> reads = 0;                 ///< by any thread
    static inline std::atomic<bool> writable_is_read = false; ///< data were written to a file that was open for both
    static inline thread_local page_of_two_hosts* now = nullptr;
};

} // namespace halocline_test

extern "C" ssize_t pread(int file, void* to, std::size_t bytes, off_t offset) {
    ++halocline_test::page_of_two_hosts::reads;
    return ::syscall(SYS_pread64, file, to, bytes, offset);
}
extern "C" ssize_t pwrite(int file, const void* from, std::size_t bytes, off_t offset) {
    using halocline_test::page_of_two_hosts;
    if ((::fcntl(file, F_GETFL) & O_ACCMODE) == O_RDWR) page_of_two_hosts::writable_is_read = true;
    if (page_of_two_hosts::now) page_of_two_hosts::now->before_write(file, offset);
    return ::syscall(SYS_pwrite64, file, from, bytes, offset);
}
