// SPDX-License-Identifier: Apache-2.0
// Which ranks time their writes to each other when a job starts, and on which processors.
#pragma once

#include <halocline/comm/job.hpp>

#include <optional>

namespace halocline::comm {

/// The rank with which a rank times their writes to each other, and its processor meanwhile; -1: it times nothing.
struct timing {
    int partner = -1, processor = -1;
    bool own_cores = false; ///< has every rank a processor of its own?
};

/// This rank's timing; none if no rank times anything.  Collective: from gathered data, so that all choose alike.
[[nodiscard]] std::optional<timing> timing_of(const job& j);

} // namespace halocline::comm
