// SPDX-License-Identifier: Apache-2.0
// Right-hand sides and solutions, checked by the plain reference operator.
#pragma once

#include "problem.hpp"
#include "report.hpp"

#include <halocline/comm/global_sum.hpp>
#include <halocline/dirac/padded_links.hpp>
#include <halocline/dirac/reference_operator.hpp>
#include <halocline/solvers/field_space.hpp>

#include <complex>
#include <string>

namespace halocline::app {

/// The plain operator, and sums over the job. All members are collective.
class verifier {
  public:
    /// `in_force`: the settings, with the boundary that the links have. `task` and `in_force` outlive it.
    verifier(const comm::job& j, const problem& task, const settings& in_force, const dirac::padded_links& links);

    /// D 1: figures for comparison with other codes.
    void apply_to_ones(run_result& result);
    /// Err: input_error: the norm of b, or of the residual that is asked for, is no normal number of double precision,
    /// so that nothing could be solved. `given` is how the user named b.
    void check_norm(const lattice::field<double>& b, const std::string& given);
    /// Compares x with b: norms, sums, true residual, and whether that meets the tolerance.  Pre: result.solve is the
    /// solver's.
    void judge(const lattice::field<double>& x, const lattice::field<double>& b, run_result& result);

  private:
    double norm(const lattice::field<double>& a);
    std::complex<double> reduce(std::complex<double> mine);
    [[nodiscard]] double allowance(const run_result& result) const;
    void require_ok(comm::status s) const;

    const problem& task_;
    const settings& in_force_;
    comm::global_sum sum_;
    solvers::field_space<double> space_;
    dirac::reference_operator reference_;
};

} // namespace halocline::app
