// SPDX-License-Identifier: Apache-2.0
// What packer.cpp and its kernels say to each other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halocline::halo::kernels {

/// A block_map, flat, with coefficients in the precision of the field.
template <class T>
struct map_view {
    std::int32_t rows = 0, block_reals = 0, components = 0, lanes = 1;
    const std::int32_t* row_begin = nullptr; ///< [rows + 1]
    const std::int32_t* block = nullptr;     ///< by term
    const T* re = nullptr;
    const T* im = nullptr;
    bool real = true;
};

/// out[site - first][row][block_reals] for sites [first, last) at these positions.
template <class T>
void map_sites(const map_view<T>& map, const std::int32_t* positions, const T* values, std::int64_t first,
               std::int64_t last, T* out);

/// count reals times scale, rounded to nearest even.
void to_half(const float* from, float scale, std::size_t count, std::uint16_t* to);
void to_bfloat16(const float* from, float scale, std::size_t count, std::uint16_t* to);
/// The same backwards, then times scale.
void from_half(const std::uint16_t* from, float scale, std::size_t count, float* to);
void from_bfloat16(const std::uint16_t* from, float scale, std::size_t count, float* to);

} // namespace halocline::halo::kernels
