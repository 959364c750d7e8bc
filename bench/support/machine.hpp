// SPDX-License-Identifier: Apache-2.0
// The processors that this program may use, and one of them for each rank: its own, or one that as many ranks share as
// any other.
#pragma once

#include <halocline/comm/processors.hpp>

#include <cstddef>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace halocline::bench {

/// The processors that the first call found, before any thread was bound.
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

/// What tells the ranks of a peer program which processors those of the bench have, one each: "0,2".
inline constexpr const char* processors_variable = "HALOCLINE_BENCH_PROCESSORS";

/// Binds the calling rank of a peer program to the processor of the bench's rank with its number. False, and no binding,
/// if the bench names none, or has another number of ranks.
inline bool pin_as_bench(int n, int ranks) {
    const char* const text = std::getenv(processors_variable);
    std::stringstream list(text == nullptr ? "" : text);
    std::vector<int> processors;
    for (std::string item; std::getline(list, item, ',');) processors.push_back(std::atoi(item.c_str()));
    if (processors.size() != static_cast<std::size_t>(ranks)) return false;
    return comm::bind_to({&processors[static_cast<std::size_t>(n)], 1});
}

/// Binds the calling rank, number `n` of `ranks`, to one of these processors that it shares with its neighbours: as by
/// halocline-run, the first ranks have the first one. False, and no binding, if some would have to share with more
/// ranks than others, or need not share.
inline bool pin_to_shared(int n, int ranks, const std::vector<int>& processors) {
    const auto all = static_cast<std::size_t>(ranks);
    if (processors.empty() || all <= processors.size() || all % processors.size() != 0) return false;
    return comm::bind_to({&processors[static_cast<std::size_t>(n) * processors.size() / all], 1});
}

} // namespace halocline::bench
