// SPDX-License-Identifier: Apache-2.0
// What ranks tell each other of the channels they are about to make, and that both ends say the same.
#pragma once

#include <halocline/comm/channel_set.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace halocline::comm {

/// peer -> positions of this rank's requests with it
using requests_by_peer = std::map<int, std::vector<std::size_t>>;

/// Err: input_error: a peer that is no rank, a key used twice.
[[nodiscard]] requests_by_peer sorted_by_peer(const job& j, std::span<const channel_request> requests,
                                              const std::string& name);

/// Every rank names the ranks that name it, equally often? Otherwise the exchange of the cards would hang.
/// Each pair adds and subtracts the same number if so, hence the sum over ranks is 0.
/// Cost: 8 bytes per rank. Collective.
void check_symmetry(const job& j, const requests_by_peer& by_peer, const std::string& name);

/// One plan's ends, as this rank sees them.
struct own_ends {
    std::uint32_t plan_id = 0;
    const channel_set_options& options;
    std::span<const channel_request> requests;
    const requests_by_peer& by_peer;
};

/// One message to each peer with all that `ends` and `cards` (by request) say of the ends with it; by peer, what came.
[[nodiscard]] std::vector<std::string> exchange_ends(const job& j, const own_ends& ends,
                                                     const std::vector<std::string>& cards);

/// Compares what came with the own ends; the peers' cards, by request. Local.
/// Err: input_error naming both ranks and both values.
[[nodiscard]] std::vector<std::string> matching_cards(const job& j, const own_ends& ends,
                                                      const std::vector<std::string>& came);

} // namespace halocline::comm
