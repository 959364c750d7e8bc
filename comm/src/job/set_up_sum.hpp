// SPDX-License-Identifier: Apache-2.0
// The sum of a number over all ranks, for use during set-up.
#pragma once

#include <halocline/comm/job.hpp>

#include <cstdint>

namespace halocline::comm {

/// Modulo 2^64; the same on every rank. Collective.  Err: rank_failure.  Cost: O(log ranks) messages.
std::uint64_t set_up_sum(const job& j, std::uint64_t mine);

} // namespace halocline::comm
