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
std::string to_string(element_type e);

} // namespace halocline::comm
