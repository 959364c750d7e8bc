// SPDX-License-Identifier: Apache-2.0
#include <halocline/base/simd_targets.hpp>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "message_checksum.cpp"
#include <hwy/foreach_target.h> // IWYU pragma: keep

#include "message_checksum.hpp"

#include <hwy/highway.h>

#include <array>
#include <cstring>

#ifndef HALOCLINE_HALO_MESSAGE_CHECKSUM_TABLE
#define HALOCLINE_HALO_MESSAGE_CHECKSUM_TABLE
namespace halocline::halo {
/// Remainders of all bytes, for the polynomial 0x1edc6f41, bits reflected.
inline constexpr auto crc32c_table = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t r = byte;
        for (int bit = 0; bit < 8; ++bit) r = (r >> 1) ^ ((r & 1) != 0 ? 0x82f63b78U : 0U);
        table[byte] = r;
    }
    return table;
}();
} // namespace halocline::halo
#endif

HWY_BEFORE_NAMESPACE();
namespace halocline::halo::HWY_NAMESPACE {

HWY_INLINE std::uint64_t word_at(const std::byte* p) {
    std::uint64_t w;
    std::memcpy(&w, p, sizeof w);
    return w;
}
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSE4
HWY_INLINE std::uint32_t step(std::uint32_t crc, std::uint64_t word) {
    return static_cast<std::uint32_t>(_mm_crc32_u64(crc, word));
}
#else
HWY_INLINE std::uint32_t step(std::uint32_t crc, std::uint64_t word) {
    for (int byte = 0; byte < 8; ++byte, word >>= 8)
        crc = (crc >> 8) ^ crc32c_table.data()[(crc ^ static_cast<std::uint32_t>(word)) & 0xff];
    return crc;
}
#endif

std::uint32_t checksum(const std::byte* bytes, std::size_t count, std::uint64_t seed) {
    const std::size_t part = count / 32 * 8; // bytes of each of four parts
    std::uint32_t crc[4] = {~0U, ~0U, ~0U, ~0U};
    for (std::size_t i = 0; i < part; i += 8)
        for (std::size_t k = 0; k < 4; ++k) crc[k] = step(crc[k], word_at(bytes + k * part + i));
    std::uint32_t sum = step(~0U, seed);
    std::size_t i = 4 * part;
    for (; i + 8 <= count; i += 8) sum = step(sum, word_at(bytes + i));
    if (i < count) { // fewer than 8 bytes
        std::uint64_t rest = 0;
        std::memcpy(&rest, bytes + i, count - i);
        sum = step(sum, rest);
    }
    for (const std::uint32_t c : crc) sum = step(sum, c);
    return ~sum;
}

} // namespace halocline::halo::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halocline::halo {
HWY_EXPORT(checksum);

std::uint32_t message_checksum(const std::byte* bytes, std::size_t count, std::uint64_t seed) noexcept {
    return HWY_DYNAMIC_DISPATCH(checksum)(bytes, count, seed);
}
} // namespace halocline::halo
#endif
