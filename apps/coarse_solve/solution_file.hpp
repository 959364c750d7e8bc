// SPDX-License-Identifier: Apache-2.0
// --solution FILE: solutions, each together with the equation that it solves.
#pragma once

#include "problem.hpp"
#include "report.hpp"

#include <halocline_app/main.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace halocline::app {

/// Where `count` solutions go if `path` was given: that file if there is one; else x.lime becomes x.00.lime, x.01.lime,
/// and so on, all with the same number of digits. "": nowhere, for all.
/// Err: input_error: several, and a name that can't be numbered.
std::vector<std::string> solution_paths(const std::string& path, std::size_t count);

/// Writes x; the file takes the place of an older one once every byte was read back and compared. A solution that did
/// not converge is written too, and says so. `s`: the values in force. "": nothing to do. False: it was not written,
/// which is recorded as lost output of the program. Collective.
bool write_solution(const program& p, const problem& task, const settings& s, const lattice::field<double>& x,
                    const run_result& result, const std::string& path);

} // namespace halocline::app
