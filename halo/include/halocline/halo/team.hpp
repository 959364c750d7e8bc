// SPDX-License-Identifier: Apache-2.0
// Several threads that drive one plan together.
#pragma once

#include <halocline/comm/team.hpp>

namespace halocline::halo {

/// With size > 1 every member calls start() and then finish(), each with its own index and the same size.
/// Err:  status::misused, to every thread of the team, if one calls as a member that the team does not have, if two
///       call as the same member, or if one does not call before the job's deadline, which counts from when another
///       waits for it. finish_or_throw() names the member (up to the 48th).
using comm::team;

} // namespace halocline::halo
