// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/element_type.hpp>

namespace halocline::comm {

std::string to_string(element_type e) {
    const std::string bits = std::to_string(8 * e.bytes);
    switch (e.kind) {
    case 'f': return "float" + bits;
    case 'i': return "int" + bits;
    case 'u': return "uint" + bits;
    default: return e.bytes == 1 ? "byte" : std::to_string(e.bytes) + "-byte objects";
    }
}

} // namespace halocline::comm
