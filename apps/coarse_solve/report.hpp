// SPDX-License-Identifier: Apache-2.0
// What coarse_solve reports: a table for human readers, one JSON object per right-hand side for machines.
#pragma once

#include "problem.hpp"

#include <halocline/amg/solver.hpp>

#include <complex>
#include <string>
#include <vector>

namespace halocline::app {

/// Everything reported about one right-hand side; figures are already reduced over ranks.
struct run_result {
    std::string rhs;      ///< its name
    std::string solution; ///< file to which it was written; empty: none
    double plaquette = 0;
    double operator_ones_norm = 0;            ///< |D 1|
    std::complex<double> operator_ones_inner; ///< <1, D 1>
    double rhs_norm = 0;
    double solution_norm = 0;
    std::complex<double> solution_sum;    ///< over all components of all sites
    std::complex<double> first_component; ///< spin 0, colour 0 of site (0,0,0,0)
    double true_relative_residual = 0;    ///< |b - D x| / |b| with the plain reference operator
    bool converged = false;
    bool has_hierarchy = true; ///< false: the set-up failed, so x = 0
    amg::solver_report solve;  ///< seconds: maximum over ranks
};

/// The final table of a run with one right-hand side.
std::string describe(const comm::job& j, const problem& p, const run_result& r);
/// Of a run with several: a line for each, with the notes that the first one does not have, one for those that were
/// iterated together, and what is said at the end.
std::string describe_one_of_many(const run_result& r, const run_result& first);
std::string describe_together(const amg::solver_report& one);
std::string describe_all(const comm::job& j, const problem& p, const std::vector<run_result>& results);
/// The JSON object, with fixed keys, as one line.
std::string to_json(const comm::job& j, const problem& p, const settings& in_force, const run_result& r);

} // namespace halocline::app
