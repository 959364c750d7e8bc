// SPDX-License-Identifier: Apache-2.0
#include <halocline/comm/claim_lines.hpp>

#include <unistd.h>

namespace halocline::comm {

std::size_t largest_claimed() {
    const long told = sysconf(_SC_LEVEL2_CACHE_SIZE); // 0 where the machine doesn't say
    const std::size_t cache_bytes = told > 0 ? static_cast<std::size_t>(told) : std::size_t{1} << 20;
    return cache_bytes / 2;
}

} // namespace halocline::comm
