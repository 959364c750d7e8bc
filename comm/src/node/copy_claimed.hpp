// SPDX-License-Identifier: Apache-2.0
// Copies into lines that another core has read.
#pragma once

#include <halocline/comm/detail/claim_lines.hpp>
#include <halocline/comm/detail/copy_bytes.hpp>

#include <algorithm>
#include <cstddef>

namespace halocline::comm {

/// to[0, bytes) = from[0, bytes), with lines claimed first (docs/decisions/0010), a page at a time, so that claimed
/// lines are still in the first-level cache when they are filled.  Pre: no overlap.
inline void copy_claimed(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
    constexpr std::size_t block = 4096;
    for (std::size_t i = 0; i < bytes; i += block) {
        const std::size_t n = std::min(block, bytes - i);
        claim_lines(to + i, to + i + n);
        copy_bytes(to + i, from + i, n);
    }
}

} // namespace halocline::comm
