// SPDX-License-Identifier: Apache-2.0
// Checksums of listed sites: over the values there, to detect whether a field was written since, and over the list. Any
// single change alters them.
#pragma once

#include <halocline/halo/field_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace halocline::halo {

/// Continues `sum` over a word.
inline std::uint64_t checksum_word(std::uint64_t sum, std::uint64_t word) noexcept {
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u; // odd, hence invertible: no change is lost
    return sum ^ sum >> 32;
}

/// Continues `sum` over the numbers of these sites, and how many they are.
inline std::uint64_t checksum_list(std::uint64_t sum, std::span<const std::int32_t> sites) noexcept {
    sum = checksum_word(sum, sites.size());
    for (const std::int32_t site : sites) sum = checksum_word(sum, static_cast<std::uint64_t>(site));
    return sum;
}

/// Continues `sum` over the values of these sites, in list order.
inline std::uint64_t checksum_sites(std::uint64_t sum, std::span<const std::int32_t> sites,
                                    const source_field& x) noexcept {
    const int lanes = x.order->lane_width();
    const std::size_t stride = static_cast<std::size_t>(lanes) * x.shape.component_bytes;
    for (const std::int32_t site : sites) {
        const std::byte* from = x.values + x.shape.offset(x.order->position(site), lanes);
        for (int c = 0; c < x.shape.components; ++c, from += stride)
            for (std::size_t at = 0; at < x.shape.component_bytes; at += sizeof(std::uint64_t)) {
                std::uint64_t word = 0;
                std::memcpy(&word, from + at, std::min(sizeof word, x.shape.component_bytes - at));
                sum = checksum_word(sum, word);
            }
    }
    return sum;
}

} // namespace halocline::halo
