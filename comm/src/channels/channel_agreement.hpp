// SPDX-License-Identifier: Apache-2.0
// What ranks exchange about the channels they are about to make, and the check that both ends agree.
#pragma once

#include <halocline/comm/channel_set.hpp>

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace halocline::comm {

/// Positions of this rank's requests for channels, by peer.
using requests_by_peer = std::map<int, std::vector<std::size_t>>;

/// Err: input_error: a peer that is not a rank, a key used twice.
[[nodiscard]] requests_by_peer sorted_by_peer(const job& j, std::span<const channel_request> requests,
                                              const std::string& name);

/// Checks that every rank names the ranks that name it, equally often; otherwise the exchange of cards would hang.
/// Method: for each pair one rank adds a number and the other subtracts it, so the sum over all ranks is 0.
/// Cost: 8 bytes per rank. Collective.
void check_symmetry(const job& j, const requests_by_peer& by_peer, const std::string& name);

/// One plan's ends, as this rank sees them.
struct own_ends {
    std::uint32_t plan_id = 0;
    const channel_set_options& options;
    std::span<const channel_request> requests;
    const requests_by_peer& by_peer;
};

/// Sends each peer one message with everything that `ends` and `cards` (by request) say about the ends that join it
/// with this rank. Returns the peers' messages, by peer.
[[nodiscard]] std::vector<std::string> exchange_ends(const job& j, const own_ends& ends,
                                                     const std::vector<std::string>& cards);

/// What the other end of a channel tells this one.
struct end_told {
    std::string card; ///< how to connect
    std::string note; ///< channel_request::note
};

/// Compares these messages with this rank's ends, and returns what the peers' ends tell them, by request. Local.
/// Err: input_error naming both ranks and both values.
[[nodiscard]] std::vector<end_told> matching_ends(const job& j, const own_ends& ends,
                                                  const std::vector<std::string>& came);

} // namespace halocline::comm
