// SPDX-License-Identifier: Apache-2.0
// The examples of solvers/README.md, compiled (docs.readmes compares them).
#include <halocline/dirac/wilson_clover.hpp>
#include <halocline/solvers/fgmres.hpp>
#include <halocline/solvers/field_space.hpp>

#include <functional>

using namespace halocline;

using vector = lattice::field<double>;
using preconditioner = std::function<comm::status(vector& z, const vector& r)>;
void solve(const comm::job& job, dirac::wilson_clover<double>& d, preconditioner& cycle, const vector& b, vector& x);

void solve(const comm::job& job, dirac::wilson_clover<double>& d, preconditioner& cycle, const vector& b, vector& x) {
    comm::global_sum sum(job, solvers::values_per_sum(50)); // collective
    solvers::field_space<double> space(d.order(), lattice::spinor_components, sum);
    solvers::fgmres_workspace<lattice::field<double>> work(space, 50);
    auto apply = [&](auto& out, const auto& in) { return d.apply(out, in); };
    auto precondition = [&](auto& z, const auto& r) { return cycle(z, r); };

    const solvers::solve_report report = solvers::fgmres(space, apply, precondition, b, x, work);
    if (report.status == solvers::solve_status::failed_communication) job.fail(report.communication, "outer solve");
}
