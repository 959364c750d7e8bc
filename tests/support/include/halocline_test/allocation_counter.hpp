// SPDX-License-Identifier: Apache-2.0
// Counts heap allocations of the whole test program: the proof that a hot path makes none.
#pragma once

#include <cstdint>

namespace halocline_test {

/// Calls of operator new since the program started, all threads.
std::uint64_t allocations() noexcept;
/// What they asked for, in all.
std::uint64_t allocated_bytes() noexcept;

} // namespace halocline_test
