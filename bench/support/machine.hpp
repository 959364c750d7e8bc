// SPDX-License-Identifier: Apache-2.0
// The processors that this program may use, and one of them for each rank.
#pragma once

#include <halocline/comm/processors.hpp>

#include <cstddef>
#include <vector>

namespace halocline::bench {

/// As determined by the first call, before any thread was bound.
inline const std::vector<int>& usable() {
    static const std::vector<int> all = comm::usable_processors();
    return all;
}

/// Binds the calling thread, number `n` of `threads`, to the usable processor with its number: one of each core first.
/// False, and no binding, if threads outnumber processors.
inline bool pin(int n, int threads) {
    if (usable().size() < static_cast<std::size_t>(threads)) return false;
    return comm::bind_to({&usable()[n], 1});
}

} // namespace halocline::bench
