// SPDX-License-Identifier: Apache-2.0
// What packers and unpackers share: reals in the 16 bits of a message's format, and back; checks.
#pragma once

#include "pack_kernels.hpp"

#include <halocline/base/error.hpp>
#include <halocline/halo/packer.hpp>

#include <string>

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

/// What packers and unpackers ask alike.  Err: input_error, beginning with `who`: a scale that is not positive, a site order
/// of another box than the local one.
inline void check_scale_and_box(const std::string& who, double scale, const plan& p, const lattice::decomposition& cut,
                                const lattice::site_order& order) {
    if (!(scale > 0)) throw input_error(who + "scale " + std::to_string(scale) + ": must be positive");
    const int rank = p.owner().rank();
    const lattice::coordinate local = cut.local_box(rank).extents;
    if (order.extents() != local)
        throw input_error(who + "the site order is of a box of " + lattice::to_string(order.extents()) +
                          ", the local box of rank " + std::to_string(rank) + " is " + lattice::to_string(local));
}

} // namespace halocline::halo
