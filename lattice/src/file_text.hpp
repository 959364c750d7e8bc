// SPDX-License-Identifier: Apache-2.0
// Values in the text of file headers and XML records: the whole text must parse.  Private to lattice/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace halocline::lattice {

std::optional<int> parse_int(std::string_view text);
std::optional<double> parse_double(std::string_view text);
/// 1 to 8 hexadecimal digits, perhaps behind 0x.
std::optional<std::uint32_t> parse_hex(std::string_view text);
/// Why parse_int() or parse_hex() does not take a text: "a number that is too large" or "not a number".
std::string why_no_number(std::string_view text, bool hexadecimal);
/// A unit of the last digit of a decimal number. Trailing zeros are not always printed, so it is at most 1e-4.
double last_digit(std::string_view number);
std::string to_hex(std::uint32_t value);
/// Removes blanks and zero bytes at both ends.
std::string_view trim(std::string_view text);
/// Text of a file for an error message: the first 40 characters, without control characters.
std::string shown(std::string_view text);

} // namespace halocline::lattice
