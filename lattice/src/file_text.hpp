// SPDX-License-Identifier: Apache-2.0
// Values in the text of file heads and XML records: the whole text or nothing.  Private to lattice/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace halocline::lattice {

std::optional<int> parse_int(std::string_view text);
std::optional<double> parse_double(std::string_view text);
/// 1 to 8 hexadecimal digits.
std::optional<std::uint32_t> parse_hex(std::string_view text);
std::string to_hex(std::uint32_t value);
/// Without blanks and zero bytes at its ends.
std::string_view trim(std::string_view text);
/// Text of a file as an error prints it: the first 40 characters, without control characters.
std::string shown(std::string_view text);

} // namespace halocline::lattice
