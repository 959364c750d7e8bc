// SPDX-License-Identifier: Apache-2.0
// Formats of messages and phases of their sites: texts and checks.
#pragma once

#include <halocline/base/enumerators.hpp>
#include <halocline/base/error.hpp>
#include <halocline/halo/boundary_phases.hpp>
#include <halocline/halo/message_format.hpp>
#include <halocline/lattice/geometry.hpp>

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <string>

namespace halocline::halo {

/// Number of reals converted together, on the stack; a site must fit.
inline constexpr int chunk_reals = 2048;

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
        check_phase_finite(who, phases[mu], std::string(" in ") + lattice::dimension_name[mu]);
}

} // namespace halocline::halo
