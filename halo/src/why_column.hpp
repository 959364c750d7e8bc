// SPDX-License-Identifier: Apache-2.0
// The last column of the tables that plans print.
#pragma once

#include <halocline/comm/job.hpp>

#include <string>

namespace halocline::halo {

/// Why messages with that peer take their path, and why its preferred transports were refused.
inline std::string why_column(const std::string& why_this_path, const comm::rank_info& peer) {
    if (peer.refused.empty()) return why_this_path;
    return why_this_path + (why_this_path.empty() ? "" : "; ") + "instead of " + peer.refused;
}

} // namespace halocline::halo
