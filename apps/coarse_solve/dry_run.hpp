// SPDX-License-Identifier: Apache-2.0
// --dry-run: what would be done, from geometry alone: no links are read, nothing is solved.
#pragma once

#include "problem.hpp"

#include <string>

namespace halocline::app {

/// Decomposition and the reason for it, rank order, memory per rank, messages and bytes per exchange.
std::string describe_dry_run(const comm::job& j, const problem& p, const settings& s);

} // namespace halocline::app
