// SPDX-License-Identifier: Apache-2.0
// A sum over the bits of listed sites: tells whether a field was written since. Any single change changes it.
#pragma once

#include <halocline/halo/field_view.hpp>

#include <cstring>
#include <span>

namespace halocline::halo {

/// `sum` continued over the sites, in the order of the list.
inline std::uint64_t checksum_sites(std::uint64_t sum, std::span<const std::int32_t> sites, const std::byte* values,
                                    const lattice::site_order& order, const site_shape& shape) noexcept {
    const auto w = static_cast<std::size_t>(order.lane_width());
    for (const std::int32_t site : sites) {
        const auto position = static_cast<std::size_t>(order.position(site));
        const std::byte* from = values + position / w * w * shape.bytes() + position % w * shape.component_bytes;
        for (int c = 0; c < shape.components; ++c, from += w * shape.component_bytes) {
            std::uint64_t word = 0;
            std::memcpy(&word, from, shape.component_bytes);
            sum = (sum ^ word) * 0x9e3779b97f4a7c15u; // odd: invertible, so that no change is lost
            sum ^= sum >> 32;
        }
    }
    return sum;
}

} // namespace halocline::halo
