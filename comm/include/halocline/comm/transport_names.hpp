// SPDX-License-Identifier: Apache-2.0
// The names of the transports, as options and reports spell them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace halocline::comm {

/// Names of all known transports, whether or not this build has them.
[[nodiscard]] std::vector<std::string> transport_names();

/// True if both ends of that transport map the memory that its messages go through: self and shm.
[[nodiscard]] constexpr bool is_in_memory(std::string_view transport) {
    return transport == "self" || transport == "shm";
}

} // namespace halocline::comm
