// SPDX-License-Identifier: Apache-2.0
// How much traffic the channels of one transport have carried.
#pragma once

#include <cstdint>
#include <string>

namespace halocline::comm {

/// Messages and bytes that a channel_set's channels of one transport have sent since set-up.
struct transport_counts {
    std::string transport;
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    std::uint64_t writes = 0;      ///< RDMA writes, where the transport counts them (verbs, ofi)
    std::uint64_t receives = 0;    ///< receive requests posted, one per write with immediate (verbs)
    std::uint64_t completions = 0; ///< completions taken (verbs)
};

} // namespace halocline::comm
