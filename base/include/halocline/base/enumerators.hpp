// SPDX-License-Identifier: Apache-2.0
// Validates options that are enums: a cast can turn any number into one.
#pragma once

#include <halocline/base/error.hpp>

#include <string>
#include <string_view>
#include <type_traits>

namespace halocline {

/// Err: input_error, with number and enumerators, unless to_string() knows `choice`, that is, does not say "?".
/// `what`: "halo 'x': path".
/// Pre: the enumerators count from 0.
template <class Enum>
requires std::is_enum_v<Enum>
void require_enumerator(std::string_view what, Enum choice) {
    const auto name = [](long long i) { return std::string(to_string(static_cast<Enum>(i))); };
    const auto number = static_cast<long long>(choice);
    if (name(number) != "?") return;
    std::string names;
    for (long long i = 0; name(i) != "?"; ++i) names += (i > 0 ? ", " : "") + name(i);
    throw input_error(std::string(what) + " " + std::to_string(number) + ": must be one of " + names);
}

} // namespace halocline
