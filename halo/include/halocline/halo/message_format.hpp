// SPDX-License-Identifier: Apache-2.0
// How the reals of a message are stored: packers (packer.hpp) and plans of regions and shells offer the same formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace halocline::halo {

/// How the reals of a message are stored.
enum class message_format : std::uint8_t {
    as_stored, ///< like the field: float or double
    /// IEEE half of scale * value, 2 B. For 2^-14 <= |scale * value| < 65520 the relative error is at most 2^-11 (2^-11
    /// + 2^-23 if scale is not a power of two); below, the absolute error is at most 2^-25 / scale; above: infinity.
    half,
    /// The upper 16 bits of the float, rounded to nearest, 2 B; relative error at most 2^-8, range as float.
    bfloat16,
};
constexpr std::string_view to_string(message_format f) {
    switch (f) {
    case message_format::as_stored: return "as_stored";
    case message_format::half: return "half";
    case message_format::bfloat16: return "bfloat16";
    }
    return "?";
}
/// Bytes of one real in a message of a field whose reals have `stored_bytes`.
constexpr std::size_t bytes_per_real(message_format format, std::size_t stored_bytes) {
    return format == message_format::as_stored ? stored_bytes : 2;
}

} // namespace halocline::halo
