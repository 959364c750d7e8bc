// SPDX-License-Identifier: Apache-2.0
#include <halocline/halo/message_format.hpp>

namespace halocline::halo {

std::string_view to_string(message_format f) {
    switch (f) {
    case message_format::as_stored: return "as_stored";
    case message_format::half: return "half";
    case message_format::bfloat16: return "bfloat16";
    }
    return "?";
}

std::size_t bytes_per_real(message_format format, std::size_t stored_bytes) {
    return format == message_format::as_stored ? stored_bytes : 2;
}

} // namespace halocline::halo
