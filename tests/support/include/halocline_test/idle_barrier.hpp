// SPDX-License-Identifier: Apache-2.0
// A barrier in which ranks make no progress, because they don't call the library: for tests of what a peer does while
// its partner is computing.
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/comm/job.hpp>

#include <atomic>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

namespace halocline_test {

class idle_barrier {
  public:
    /// Collective.  Pre: all ranks are on this host.
    explicit idle_barrier(const halocline::comm::job& j) : ranks_(j.ranks()) {
        int file = -1;
        const auto map = [&] {
            if (file < 0 || ftruncate(file, sizeof(counter)) != 0) throw halocline::error("no shared memory");
            void* const p = mmap(nullptr, sizeof(counter), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            if (p == MAP_FAILED) throw halocline::error("no shared memory");
            came_ = static_cast<counter*>(p);
        };
        j.collectively([&] {
            if (j.rank() != 0) return;
            file = memfd_create("halocline-test", MFD_CLOEXEC);
            map();
        });
        const std::string place = j.broadcast("/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file));
        j.collectively([&] {
            if (j.rank() == 0) return;
            file = open(place.c_str(), O_RDWR | O_CLOEXEC);
            map();
        });
        close(file);
    }
    ~idle_barrier() { munmap(came_, sizeof(counter)); }
    idle_barrier(const idle_barrier&) = delete;
    idle_barrier& operator=(const idle_barrier&) = delete;

    void operator()() {
        const int all = ranks_ * ++meetings_;
        for (came_->fetch_add(1); came_->load() < all;) std::this_thread::yield();
    }

  private:
    using counter = std::atomic<int>;
    int ranks_, meetings_ = 0;
    counter* came_ = nullptr; ///< how often a rank has come; the memory begins with zeros
};

} // namespace halocline_test
