// SPDX-License-Identifier: Apache-2.0
// --solution FILE: the field that was solved for, with what it solves.
#pragma once

#include "problem.hpp"
#include "report.hpp"

#include <halocline_app/main.hpp>

#include <string>

namespace halocline::app {

/// The text of a setting, as --help and halocline-info show it.  Pre: there is such a key.
std::string value_of(const std::string& key_path, const settings& s);

/// Writes x, reads it back and compares checksums. A solution that did not converge is written too, and says so.
/// "": nothing to do. False: no such file now; what can't be written is lost output of the program. Collective.
bool write_solution(const program& p, const problem& problem, const settings& s, const lattice::field<double>& x,
                    const run_result& result, const std::string& path);

} // namespace halocline::app
