// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace halocline::comm {

/// Begins to fetch the cache line of `at` into this core for writing. Unlike claim_lines() on some cores it stores
/// nothing, so it is safe for data that may not have been read yet.
/// Cost: a nanosecond; the line arrives in the background.
inline void prefetch_for_writing(const void* at) noexcept {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(at)));
#else
    __builtin_prefetch(at, 1);
#endif
}

} // namespace halocline::comm
