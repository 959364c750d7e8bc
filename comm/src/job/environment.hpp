// SPDX-License-Identifier: Apache-2.0
// Reads environment variables.
#pragma once

#include <halocline/base/error.hpp>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

namespace halocline::comm {

/// "" if the variable is not set.
inline std::string environment_text(const char* variable) {
    const char* text = std::getenv(variable);
    return text == nullptr ? "" : text;
}

/// The variable HALOCLINE_<name>, for an option of [comm] that is empty; "" where HALOCLINE_COMM_<name>, which overrides
/// it, says so.
inline std::string short_variable(const std::string& name) {
    const char* const longer = std::getenv(("HALOCLINE_COMM_" + name).c_str());
    return longer != nullptr && *longer == 0 ? "" : environment_text(("HALOCLINE_" + name).c_str());
}

/// The variable's milliseconds; `otherwise` if it is not set.  Err: input_error: not a number, or more than an hour.
inline std::chrono::milliseconds environment_time(const char* variable, std::chrono::milliseconds otherwise) {
    constexpr int most = 3'600'000;
    const char* text = std::getenv(variable);
    if (text == nullptr) return otherwise;
    int ms = 0;
    const char* end = text + std::strlen(text);
    const auto [rest, bad] = std::from_chars(text, end, ms);
    if (bad != std::errc() || rest != end || ms < 0 || ms > most)
        throw input_error(std::string(variable) + "='" + text + "': expected milliseconds from 0 to " +
                          std::to_string(most));
    return std::chrono::milliseconds(ms);
}

} // namespace halocline::comm
