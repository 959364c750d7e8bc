// SPDX-License-Identifier: Apache-2.0
// Counts heap allocations of the whole test program: the proof that a hot path makes none. They can be made to fail.
#pragma once

#include <cstdint>

namespace halocline_test {

/// While it exists, operator new fails in this thread.
class without_memory {
  public:
    without_memory() noexcept;
    ~without_memory();
    without_memory(const without_memory&) = delete;
    without_memory& operator=(const without_memory&) = delete;
};

/// Number of calls of operator new since the program started, in all threads.
std::uint64_t allocations() noexcept;
/// Total number of bytes that they requested.
std::uint64_t allocated_bytes() noexcept;

/// allocations() made while `work` runs, by whichever thread.
template <class Work>
std::uint64_t allocations_in(Work&& work) {
    const std::uint64_t before = allocations();
    work();
    return allocations() - before;
}

/// Those made while all threads that meet at this barrier run their `work`, and by nothing that they do before or
/// after; the same number in each thread.
template <class Barrier, class Work>
std::uint64_t allocations_in(Barrier& meet, Work&& work) {
    meet.arrive_and_wait();
    const std::uint64_t before = allocations();
    meet.arrive_and_wait(); // nobody works before all have counted
    work();
    meet.arrive_and_wait();
    const std::uint64_t after = allocations();
    meet.arrive_and_wait();
    return after - before;
}

} // namespace halocline_test
