// SPDX-License-Identifier: Apache-2.0
// Several threads that drive one plan together. There are two kinds of team behind this. A plan packs its messages at
// once, into slots that are free, so each member packs a fixed share of every message, and whoever packs the last part
// sends it (packing_team). What a plan over fields copies comes up at any time, whenever a target becomes free or a
// message arrives; a fixed share would wait for a member that computes. So its member 0 does everything, and offers
// each copy in pieces to whichever member is there (copying_team; docs/decisions/0007, 0028). Users see no difference,
// except that only member 0 of a plan over fields touches channels.
#pragma once

#include <halocline/comm/team.hpp>

namespace halocline::halo {

/// With size > 1 every member calls start() and then finish(), each with its own index and the same size.
/// Err:  status::misused, for every thread of the team, if one calls with an index outside the team, if two call with
///       the same index or with different sizes above 1, or if one does not call before the job's deadline, counted from
///       when another waits for it.
///       finish_or_throw() names the member (if it is one of the first 48).
using comm::team;

} // namespace halocline::halo
