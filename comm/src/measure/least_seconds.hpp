// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <halocline/comm/clock.hpp>

#include <algorithm>
#include <cstdint>

namespace halocline::comm {

/// The least time of a few attempts: other load on the machine only adds.
template <class Work>
[[nodiscard]] double least_seconds(int attempts, Work&& work) {
    std::uint64_t least = ~std::uint64_t{0};
    for (int i = 0; i < attempts; ++i) {
        const std::uint64_t before = ticks();
        work();
        least = std::min(least, ticks() - before);
    }
    return seconds(least);
}

} // namespace halocline::comm
