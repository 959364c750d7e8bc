// SPDX-License-Identifier: Apache-2.0
// Lists of positions in a short form, for messages between ranks at set-up.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace halocline::halo {

/// A list of storage positions in a short form: `count` runs of `sites` neighbours, `stride` positions apart.
struct position_run {
    std::int64_t first = 0, stride = 0;
    std::int32_t sites = 0, count = 0;
};
std::vector<position_run> runs_of(std::span<const std::int64_t> positions);
std::vector<std::int64_t> positions_of(std::span<const position_run> runs);

/// The middle of a longest run: who works next to the positions, and what prefetchers do at their ends, is far from it.
/// Pre: there is a position.
std::int64_t inner_position(std::span<const position_run> runs);

} // namespace halocline::halo
