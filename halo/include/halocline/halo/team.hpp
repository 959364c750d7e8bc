// SPDX-License-Identifier: Apache-2.0
// Several threads that drive one plan together.
#pragma once

#include <halocline/comm/team.hpp>

namespace halocline::halo {

/// With size > 1 every member calls start() and then finish(), each with its own index and the same size.
/// Err:  status::misused, for every thread of the team, if one calls with an index outside the team, if two call with
///       the same index, or if one does not call before the job's deadline, counted from when another waits for it.
///       finish_or_throw() names the member (if it is one of the first 48).
using comm::team;

} // namespace halocline::halo
