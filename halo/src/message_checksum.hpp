// SPDX-License-Identifier: Apache-2.0
// CRC32C (Castagnoli) of messages, using the machine's instruction if it has one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halocline::halo {

/// A CRC32C over the CRC32Cs of four equal parts of the bytes, the rest, and `seed`. A change within a part is detected
/// as by the part's CRC; four parts at a time keep the CRC instruction busy, whose latency is three cycles.
/// Cost: reads the bytes once, about 8 B per cycle with the instruction, 0.3 without.
std::uint32_t message_checksum(const std::byte* bytes, std::size_t count, std::uint64_t seed) noexcept;

} // namespace halocline::halo
