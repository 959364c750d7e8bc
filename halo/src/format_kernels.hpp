// SPDX-License-Identifier: Apache-2.0
// Changes of format, compiled for every SIMD target.  Pre: format is half or bfloat16.
#pragma once

#include <halocline/halo/message_format.hpp>

#include <cstddef>
#include <cstdint>

namespace halocline::halo::kernels {

/// to = scale * from, rounded to nearest even.
void encode(message_format format, const float* from, float scale, std::size_t count, std::uint16_t* to) noexcept;
/// to = from * (1 / scale), for what was encoded with this scale.
void decode(message_format format, const std::uint16_t* from, float scale, std::size_t count, float* to) noexcept;

} // namespace halocline::halo::kernels
