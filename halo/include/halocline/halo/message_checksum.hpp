// SPDX-License-Identifier: Apache-2.0
// CRC32C (Castagnoli) of messages, with the instruction of the machine where it has one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halocline::halo {

/// CRC32C of four equal parts of the bytes, the rest, and `seed`, taken together by another CRC32C: each part's changes
/// are found as by the CRC of the part, and four parts keep the instruction busy, whose result takes three cycles.
/// Cost: reads the bytes once, about 8 B per cycle with the instruction, 0.3 without.
std::uint32_t message_checksum(const std::byte* bytes, std::size_t count, std::uint64_t seed) noexcept;

} // namespace halocline::halo
