// SPDX-License-Identifier: Apache-2.0
// What the packing kernels compute, as plain loops: the reference of their tests.
#pragma once

#include <halocline/halo/field_view.hpp>

#include <cstring>
#include <span>

namespace halocline::halo::reference {

/// One side of a copy: positions of its sites in storage with this many lanes.
struct side {
    std::span<const std::int64_t> positions;
    int lanes = 1;

    /// Offset in bytes of component c of the i-th site.
    [[nodiscard]] std::size_t offset(std::int64_t i, int c, const site_shape& shape) const {
        const std::int64_t p = positions[static_cast<std::size_t>(i)];
        return static_cast<std::size_t>((p / lanes * shape.components + c) * lanes + p % lanes) * shape.component_bytes;
    }
};

/// site_copy::copy for the same lists.
inline void copy(const side& from, const side& to, const std::byte* source, std::byte* target, const site_shape& shape,
                 std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
        for (int c = 0; c < shape.components; ++c)
            std::memcpy(target + to.offset(i, c, shape), source + from.offset(i, c, shape), shape.component_bytes);
}

/// site_copy::add for the same lists.
template <class T>
void add(const side& from, const side& to, const std::byte* source, std::byte* target, const site_shape& shape, std::int64_t first,
         std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i)
        for (int c = 0; c < shape.components; ++c) {
            T x, y;
            std::memcpy(&x, source + from.offset(i, c, shape), sizeof(T));
            std::memcpy(&y, target + to.offset(i, c, shape), sizeof(T));
            y += x;
            std::memcpy(target + to.offset(i, c, shape), &y, sizeof(T));
        }
}

} // namespace halocline::halo::reference
