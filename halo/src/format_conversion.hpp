// SPDX-License-Identifier: Apache-2.0
// What packers and unpackers share: converting reals to the 16 bits of a message's format and back, and checks.
#pragma once

#include "format_kernels.hpp"

#include <halocline/base/enumerators.hpp>
#include <halocline/base/error.hpp>
#include <halocline/halo/packer.hpp>

#include <cstdio>
#include <limits>
#include <string>

namespace halocline::halo {

/// Number of reals converted together, on the stack; a site must fit.
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

/// Err: input_error, beginning with `who`: another format, a scale that floats can't be multiplied with and divided by.
inline void check_format(const std::string& who, message_format format, double scale) {
    require_enumerator(who + "format", format);
    constexpr double least = std::numeric_limits<float>::min(); // its inverse is a float, too
    if (scale >= least && scale <= 1 / least) return;
    char text[80];
    std::snprintf(text, sizeof text, "scale %g: must be positive, from %.2g to %.2g", scale, least, 1 / least);
    throw input_error(who + text);
}

/// Checks common to packers and unpackers.  Err: input_error, beginning with `who`: what check_format() refuses, a site
/// order of another box than the local one.
template <class Options>
void check_format_and_box(const std::string& who, const Options& options, const plan& p,
                          const lattice::decomposition& cut, const lattice::site_order& order) {
    check_format(who, options.format, options.scale);
    const int rank = p.job().rank();
    const lattice::coordinate local = cut.local_box(rank).extents;
    if (order.extents() != local)
        throw input_error(who + "the site order is of a box of " + lattice::to_string(order.extents()) +
                          ", the local box of rank " + std::to_string(rank) + " is " + lattice::to_string(local));
}

} // namespace halocline::halo
