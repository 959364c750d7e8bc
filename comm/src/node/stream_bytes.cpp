// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/detail/stream_bytes.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>

// The thread sanitizer only sees ordinary stores.
#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
#include <emmintrin.h>
#define HALOCLINE_STREAMS 1
#endif

namespace halocline::comm {

void stream_lines(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
#ifdef HALOCLINE_STREAMS
    constexpr std::size_t word = sizeof(__m128i);
    for (std::size_t i = 0; i < bytes; i += word)
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + i),
                         _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
#else
    std::memcpy(to, from, bytes);
#endif
}

void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    constexpr std::size_t line = 64;
    const std::size_t head = std::min(bytes, (line - reinterpret_cast<std::uintptr_t>(to) % line) % line);
    const std::size_t lines = (bytes - head) / line * line;
    if (head > 0) std::memcpy(to, from, head);
    if (lines > 0) stream_lines(to + head, from + head, lines);
    if (head + lines < bytes) std::memcpy(to + head + lines, from + head + lines, bytes - head - lines);
}

void finish_streams() noexcept {
#ifdef HALOCLINE_STREAMS
    _mm_sfence();
#endif
}

} // namespace halocline::comm
