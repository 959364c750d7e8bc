// SPDX-License-Identifier: Apache-2.0
// --solution FILE: the solution, together with the equation that it solves.
#pragma once

#include "problem.hpp"
#include "report.hpp"

#include <halocline_app/main.hpp>

#include <string>

namespace halocline::app {

/// Writes x; the file takes the place of an older one once every byte was read back and compared. A solution that did
/// not converge is written too, and says so. `s`: the values in force. "": nothing to do. False: it was not written,
/// which is recorded as lost output of the program. Collective.
bool write_solution(const program& p, const problem& task, const settings& s, const lattice::field<double>& x,
                    const run_result& result, const std::string& path);

} // namespace halocline::app
