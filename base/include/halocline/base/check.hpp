// SPDX-License-Identifier: Apache-2.0
// How much the library checks how it is used. Fixed when an object is made: with checks off, its hot path has one
// branch that is never taken, outside all loops.
#pragma once

#include <halocline/base/error.hpp>

#include <cstdlib>
#include <string>
#include <string_view>

namespace halocline {

/// Each level includes those before it.
enum class check_level {
    off,
    light,  ///< a comparison here and there
    normal, ///< also reads data once more, to detect stale ghosts
    comm    ///< also costs communication: a checksum behind each message
};

/// "off", "light", "normal" or "comm".  Err: input_error naming `origin`.
inline check_level parse_check_level(std::string_view text, std::string_view origin) {
    if (text == "off") return check_level::off;
    if (text == "light") return check_level::light;
    if (text == "normal") return check_level::normal;
    if (text == "comm") return check_level::comm;
    throw input_error(std::string(origin) + " is '" + std::string(text) + "': it must be off, light, normal or comm");
}

/// The level that the environment variable HALOCLINE_CHECK asks for; light if it is not set.
/// Err: input_error: another value.
inline check_level default_checks() {
    const char* text = std::getenv("HALOCLINE_CHECK");
    return text == nullptr ? check_level::light : parse_check_level(text, "HALOCLINE_CHECK");
}

} // namespace halocline
