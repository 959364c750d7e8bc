// SPDX-License-Identifier: Apache-2.0
// Several threads that drive one plan together.
#pragma once

#include <halocline/comm/team.hpp>

namespace halocline::halo {

/// With size > 1 every member calls start() and then finish(), each with its own index and the same size.
/// Err:  status::misused, to every thread of the team, if one calls as a member that the team does not have. A thread
///       that does not call at all is waited for.
using comm::team;

} // namespace halocline::halo
