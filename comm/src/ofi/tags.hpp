// SPDX-License-Identifier: Apache-2.0
// The 32 bits that come with a write to a peer. For a channel's message, greeting or farewell: the id of the peer's
// end, and which of these it is. For a piece of a large message: the highest bit, the link, and the link's record.
#pragma once

#include <cstdint>

namespace halocline::comm::ofi_tags {

constexpr std::uint32_t bits = 3, mask = (1u << bits) - 1;
constexpr std::uint32_t message = 0; ///< into slot 0; 1: into slot 1
constexpr std::uint32_t greeting = 2, farewell = 3;
constexpr std::uint32_t values = 4; ///< into fields and arrays, in an even epoch; 5: in an odd one
constexpr std::uint32_t parts = 6;  ///< the same for a message shorter than planned; 7: in an odd epoch
constexpr std::uint32_t bulk = std::uint32_t{1} << 31, record_bits = 6;
constexpr std::uint32_t most_ends = bulk >> bits, most_links = bulk >> record_bits;

/// If the provider has no RMA, a tagged message is matched by those 32 bits and by its piece of the message.
constexpr std::uint64_t match_bits(std::uint32_t data, std::uint32_t piece) {
    return std::uint64_t{piece} << 32 | data;
}

} // namespace halocline::comm::ofi_tags
