// SPDX-License-Identifier: Apache-2.0
#include "position_runs.hpp"

#include <algorithm>

namespace halocline::halo {

std::vector<position_run> runs_of(std::span<const std::int64_t> positions) {
    std::vector<position_run> runs;
    for (std::size_t first = 0, last = 0; first < positions.size(); first = last) {
        for (last = first + 1; last < positions.size() && positions[last] == positions[last - 1] + 1;) ++last;
        const auto sites = static_cast<std::int32_t>(last - first);
        if (!runs.empty() && runs.back().sites == sites) {
            position_run& r = runs.back();
            if (r.count == 1) r.stride = positions[first] - r.first;
            if (positions[first] == r.first + r.count * r.stride) {
                ++r.count;
                continue;
            }
        }
        runs.push_back({positions[first], 0, sites, 1});
    }
    return runs;
}

std::vector<std::int64_t> positions_of(std::span<const position_run> runs) {
    std::vector<std::int64_t> positions;
    for (const position_run& r : runs)
        for (std::int32_t k = 0; k < r.count; ++k)
            for (std::int32_t s = 0; s < r.sites; ++s) positions.push_back(r.first + k * r.stride + s);
    return positions;
}

std::int64_t inner_position(std::span<const position_run> runs) {
    const position_run& longest = *std::max_element(
        runs.begin(), runs.end(), [](const position_run& a, const position_run& b) { return a.sites < b.sites; });
    return longest.first + longest.count / 2 * longest.stride + longest.sites / 2;
}

} // namespace halocline::halo
