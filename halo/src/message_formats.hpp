// SPDX-License-Identifier: Apache-2.0
// Reals in the 16 bits of a message's format, and back.
#pragma once

#include "pack_kernels.hpp"

#include <halocline/halo/packer.hpp>

namespace halocline::halo {

/// Reals that change their format together, on the stack; a site must fit.
inline constexpr int chunk_reals = 2048;

/// Pre: format is half or bfloat16.
inline void encode(message_format format, const float* from, float scale, std::size_t count,
                   std::uint16_t* to) noexcept {
    if (format == message_format::half)
        kernels::to_half(from, scale, count, to);
    else
        kernels::to_bfloat16(from, scale, count, to);
}
inline void decode(message_format format, const std::uint16_t* from, float scale, std::size_t count,
                   float* to) noexcept {
    if (format == message_format::half)
        kernels::from_half(from, scale, count, to);
    else
        kernels::from_bfloat16(from, scale, count, to);
}

} // namespace halocline::halo
