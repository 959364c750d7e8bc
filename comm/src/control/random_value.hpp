// SPDX-License-Identifier: Apache-2.0
// Random values from the system: secrets, and names that nobody else has.
#pragma once

#include "descriptor.hpp"

#include <sys/random.h>
#include <type_traits>

namespace halocline::comm {

/// A value whose bytes are all random.  Err: error: the system provides no random numbers.
template <class T>
[[nodiscard]] T random_value() {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 256); // which getrandom() gives at once
    T value{};
    if (getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) fail_system("getrandom");
    return value;
}

} // namespace halocline::comm
