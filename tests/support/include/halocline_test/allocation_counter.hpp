// SPDX-License-Identifier: Apache-2.0
// Counts heap allocations of the whole test program: the proof that a hot path makes none.
#pragma once

#include <cstdint>

namespace halocline_test {

/// Number of calls of operator new since the program started, in all threads.
std::uint64_t allocations() noexcept;
/// Total number of bytes that they requested.
std::uint64_t allocated_bytes() noexcept;

} // namespace halocline_test
