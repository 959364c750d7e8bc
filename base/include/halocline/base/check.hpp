// SPDX-License-Identifier: Apache-2.0
// How much the library checks its use. Fixed when an object is made: with checks off, its hot path has one branch that
// is never taken, outside all loops.
#pragma once

#include <halocline/base/error.hpp>

#include <cstdlib>
#include <string>
#include <string_view>

namespace halocline {

/// Each level includes the previous ones.
enum class check_level {
    off,
    light,  ///< what costs a comparison here and there; such checks are always made, so off is the same today
    normal, ///< also reads data once more, to detect stale ghosts
    comm    ///< also costs communication: a checksum after each message
};
constexpr std::string_view to_string(check_level c) {
    switch (c) {
    case check_level::off: return "off";
    case check_level::light: return "light";
    case check_level::normal: return "normal";
    case check_level::comm: return "comm";
    }
    return "?";
}

/// "off", "light", "normal" or "comm".  Err: input_error naming `origin`.
inline check_level parse_check_level(std::string_view text, std::string_view origin) {
    for (const check_level c : {check_level::off, check_level::light, check_level::normal, check_level::comm})
        if (text == to_string(c)) return c;
    throw input_error(std::string(origin) + " is '" + std::string(text) + "': it must be off, light, normal or comm");
}

/// The level requested by the environment variable HALOCLINE_CHECK; light if it is not set.
/// Err: input_error: another value.
inline check_level default_checks() {
    const char* text = std::getenv("HALOCLINE_CHECK");
    return text == nullptr ? check_level::light : parse_check_level(text, "HALOCLINE_CHECK");
}

} // namespace halocline
