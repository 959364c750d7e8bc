// SPDX-License-Identifier: Apache-2.0
// A checksum over the bits of listed sites, to detect whether a field was written since. Any single change alters it.
#pragma once

#include <halocline/halo/field_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace halocline::halo {

/// Continues `sum` over the sites, in list order.
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
                sum = (sum ^ word) * 0x9e3779b97f4a7c15u; // odd, hence invertible: no change is lost
                sum ^= sum >> 32;
            }
    }
    return sum;
}

} // namespace halocline::halo
