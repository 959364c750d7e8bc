// SPDX-License-Identifier: Apache-2.0
// What the packing kernels compute, as plain loops: the reference of their tests.
#pragma once

#include <halocline/halo/copy_table.hpp>

#include <cstring>

namespace halocline::halo::reference {

/// Offset in bytes of a component in storage [outer][component][W].
inline std::size_t offset(std::int64_t place, std::size_t component, std::size_t lane_width, std::size_t site_bytes,
                          std::size_t component_bytes) {
    const auto p = static_cast<std::size_t>(place);
    return p / lane_width * lane_width * site_bytes + component * lane_width * component_bytes + p % lane_width * component_bytes;
}

/// copy_table::copy for the table of the same sides.
inline void copy(const site_places& from, const site_places& to, std::size_t site_bytes, const std::byte* source,
                 std::byte* target, std::int64_t first, std::int64_t last, std::size_t component_bytes) {
    for (std::int64_t i = first; i < last; ++i) {
        const auto n = static_cast<std::size_t>(i);
        for (std::size_t c = 0; c < site_bytes / component_bytes; ++c)
            std::memcpy(target + offset(to.places.empty() ? i : to.places[n], c, static_cast<std::size_t>(to.lane_width),
                                        site_bytes, component_bytes),
                        source + offset(from.places.empty() ? i : from.places[n], c,
                                        static_cast<std::size_t>(from.lane_width), site_bytes, component_bytes),
                        component_bytes);
    }
}

} // namespace halocline::halo::reference
