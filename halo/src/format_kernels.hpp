// SPDX-License-Identifier: Apache-2.0
// Changes of format, compiled for every SIMD target.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halocline::halo::kernels {

/// Converts `count` reals times scale, rounded to nearest even.
void to_half(const float* from, float scale, std::size_t count, std::uint16_t* to);
void to_bfloat16(const float* from, float scale, std::size_t count, std::uint16_t* to);
/// Converts `count` half or bfloat16 numbers to reals, then multiplies by scale.
void from_half(const std::uint16_t* from, float scale, std::size_t count, float* to);
void from_bfloat16(const std::uint16_t* from, float scale, std::size_t count, float* to);

} // namespace halocline::halo::kernels
