// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace halocline::comm {

/// For use between two polls of memory that another core writes: the poll that sees the write returns sooner, and a
/// core shared by two hardware threads is left to the other one. About 15 ns.
inline void pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

} // namespace halocline::comm
