// SPDX-License-Identifier: Apache-2.0
// A barrier in which ranks make no progress, because they don't call the library: for tests of what a peer does while
// its partner is computing.
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline_test/shared_area.hpp>

#include <atomic>
#include <thread>

namespace halocline_test {

class idle_barrier {
  public:
    /// Collective.  Pre: all ranks are on this host.
    explicit idle_barrier(const halocline::comm::job& j) : ranks_(j.ranks()), area_(j, sizeof(std::atomic<int>)) {}

    void operator()() {
        (*this)([] {});
    }
    /// Calls work() until the others have come, too: for a rank without which one of them would not come.
    template <class Work>
    void operator()(Work&& work) {
        // how often a rank has come; the memory begins with zeros
        auto& came = *reinterpret_cast<std::atomic<int>*>(area_.of(0));
        const int all = ranks_ * ++meetings_;
        for (came.fetch_add(1); came.load() < all; std::this_thread::yield()) work();
    }

  private:
    int ranks_, meetings_ = 0;
    shared_area area_;
};

} // namespace halocline_test
