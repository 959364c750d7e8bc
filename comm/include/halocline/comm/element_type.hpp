// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <type_traits>

namespace halocline::comm {

/// The type of the elements of a message, as far as its two ends compare it.
struct element_type {
    char kind = 'b';       ///< 'f': real, 'i': signed, 'u': unsigned, 'b': anything else
    std::size_t bytes = 0; ///< of one; 0: the type isn't told
    friend bool operator==(const element_type&, const element_type&) = default;
};

template <class T>
constexpr element_type element_type_of() {
    char kind = 'b';
    if constexpr (std::is_floating_point_v<T>) {
        kind = 'f';
    } else if constexpr (std::is_integral_v<T> && sizeof(T) > 1) {
        kind = std::is_signed_v<T> ? 'i' : 'u';
    }
    return {kind, sizeof(T)};
}

/// "float64", "int32", "byte", "24-byte objects".
inline std::string to_string(element_type e) {
    const std::string bits = std::to_string(8 * e.bytes);
    switch (e.kind) {
    case 'f': return "float" + bits;
    case 'i': return "int" + bits;
    case 'u': return "uint" + bits;
    default: return e.bytes == 1 ? "byte" : std::to_string(e.bytes) + "-byte objects";
    }
}

} // namespace halocline::comm
