// SPDX-License-Identifier: Apache-2.0
// Memory that its process may use but that the system copies for nobody else, like some devices' memory.
#pragma once

#include <cstddef>
#include <span>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace halocline_test {

class secret_memory {
  public:
    /// The bytes from `hidden_from` on are secret, those before it are ordinary.  Pre: whole pages.
    explicit secret_memory(std::size_t bytes, std::size_t hidden_from = 0)
        : bytes_(bytes), p_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
        const std::size_t hidden = bytes - hidden_from;
        const int fd = static_cast<int>(syscall(SYS_memfd_secret, 0));
        exists_ = p_ != MAP_FAILED && fd >= 0 && ftruncate(fd, static_cast<off_t>(hidden)) == 0 &&
                  mmap(all().data() + hidden_from, hidden, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) !=
                      MAP_FAILED;
        if (fd >= 0) close(fd);
    }
    ~secret_memory() {
        if (p_ != MAP_FAILED) munmap(p_, bytes_);
    }
    secret_memory(const secret_memory&) = delete;
    secret_memory& operator=(const secret_memory&) = delete;
    /// Not every kernel has it.
    [[nodiscard]] bool exists() const { return exists_; }
    [[nodiscard]] std::span<std::byte> all() const { return {static_cast<std::byte*>(p_), bytes_}; }

  private:
    std::size_t bytes_;
    void* p_;
    bool exists_ = false;
};

} // namespace halocline_test
