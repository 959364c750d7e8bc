// SPDX-License-Identifier: Apache-2.0
// What packers and unpackers share: converting reals to the 16 bits of a message's format and back, and checks.
#pragma once

#include "format_kernels.hpp"

#include <halocline/base/enumerators.hpp>
#include <halocline/base/error.hpp>
#include <halocline/halo/boundary_phases.hpp>
#include <halocline/halo/packer.hpp>

#include <algorithm>
#include <array>
#include <complex>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
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

/// "half of 2 * value": for comparison between ranks, of the scale as messages use it, in floats.
inline std::string format_text(message_format format, double scale) {
    char scaled[40];
    std::snprintf(scaled, sizeof scaled, " of %.9g * value", static_cast<double>(static_cast<float>(scale)));
    return std::string(to_string(format)) + scaled;
}

/// Is there one for any face?
inline bool has_maps(const std::array<block_map, lattice::faces>& maps) {
    return std::ranges::any_of(maps, [](const block_map& m) { return !m.empty(); });
}

/// Can a message through face f of some rank cross the edge of the lattice?
inline bool wraps_anywhere(const plan& p, face f) { return p.options().boundaries[f.mu] != lattice::boundary::open; }

/// "phase (0, -1)".
inline std::string phase_text(std::complex<double> phase) {
    char text[64];
    std::snprintf(text, sizeof text, "phase (%g, %g)", phase.real(), phase.imag());
    return text;
}

/// Err: input_error, beginning with `who`: a phase, which is `where`, is infinite or not a number.
inline void check_phase_finite(const std::string& who, std::complex<double> phase, const std::string& where) {
    if (!std::isfinite(phase.real()) || !std::isfinite(phase.imag()))
        throw input_error(who + phase_text(phase) + where + ": must be finite");
}
inline void check_phases_finite(const std::string& who, const boundary_phases& phases) {
    for (int mu = 0; mu < lattice::dimensions; ++mu)
        check_phase_finite(who, phases[mu], std::string(" in ") + "xyzt"[mu]);
}

/// Err: input_error, beginning with `who`: a phase that is not finite; a site of `most` reals, in a message or a field,
///      that must be converted and has no room in a chunk.
inline void check_chunk(const std::string& who, int most, message_format format,
                        const std::array<block_map, lattice::faces>& maps, const boundary_phases& phases) {
    check_phases_finite(who, phases);
    const bool copies = format == message_format::as_stored && !has_maps(maps) &&
                        std::ranges::all_of(phases, [](std::complex<double> phase) { return phase == 1.0; });
    if (!copies && most > chunk_reals)
        throw input_error(who + std::to_string(most) +
                          " reals per site: a projection, a phase or a change of format takes up to " +
                          std::to_string(chunk_reals));
}

/// The site order for which packers and unpackers of a plan are made: this one, or if null the plan's.
inline std::shared_ptr<const lattice::site_order> order_for(const plan& p,
                                                            std::shared_ptr<const lattice::site_order> order) {
    if (!order) order = p.options().order;
    return order ? order : lattice::site_order::lexicographic(p.cut().local_box(p.job().rank()).extents);
}

/// Checks common to packers and unpackers.  Err: input_error, beginning with `who`: what check_format() refuses, a site
/// order of another box than the local one.
inline void check_format_and_box(const std::string& who, message_format format, double scale, const plan& p,
                                 const lattice::site_order& order) {
    check_format(who, format, scale);
    const int rank = p.job().rank();
    const lattice::coordinate local = p.cut().local_box(rank).extents;
    if (order.extents() != local)
        throw input_error(who + "the site order is of a box of " + lattice::to_string(order.extents()) +
                          ", the local box of rank " + std::to_string(rank) + " is " + lattice::to_string(local));
}

} // namespace halocline::halo
