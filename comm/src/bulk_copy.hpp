// SPDX-License-Identifier: Apache-2.0
// Copies between cores. Above 128 KiB the processor's string move, where it says that it is fast: measured 4 to 27 % faster
// than memcpy when two cores copy each other's fresh data (128 KiB to 8 MiB, Zen 4), never slower. Non-temporal stores
// were up to 40 % slower below 8 MiB: the receiver wants the data in its cache.
#pragma once

#include <cstddef>
#include <cstring>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace halocline::comm {

/// Does the processor have fast string moves (ERMS)?
inline bool has_fast_string_move() noexcept {
#if defined(__x86_64__)
    static const bool has = [] {
        unsigned a = 0, b = 0, c = 0, d = 0;
        return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & (1U << 9)) != 0;
    }();
    return has;
#else
    return false;
#endif
}

/// memcpy; the ranges don't overlap. Null pointers are fine for 0 bytes.
inline void copy_bulk(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    if (bytes == 0) return;
#if defined(__x86_64__)
    if (bytes >= 128 * 1024 && has_fast_string_move()) {
        asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
        return;
    }
#endif
    std::memcpy(to, from, bytes);
}

} // namespace halocline::comm
