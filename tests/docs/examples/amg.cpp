// SPDX-License-Identifier: Apache-2.0
// The examples of amg/README.md, compiled (docs.readmes compares them).
#include <halocline/amg/solver.hpp>

#include <algorithm>
#include <span>
#include <vector>

using namespace halocline;

bool solve(const comm::job& job, const lattice::decomposition& cut, const dirac::padded_links& links,
           lattice::field<double>& x, const lattice::field<double>& b, std::span<lattice::field<double>* const> xs,
           std::span<const lattice::field<double>* const> bs);

bool solve(const comm::job& job, const lattice::decomposition& cut, const dirac::padded_links& links,
           lattice::field<double>& x, const lattice::field<double>& b, std::span<lattice::field<double>* const> xs,
           std::span<const lattice::field<double>* const> bs) {
    amg::solver solver(job, cut, links, {.m0 = -0.5, .csw = 1});
    solver.setup();
    const amg::solver_report report = solver.solve(x, b); // report.converged(), report.coarse.halo_seconds, …
    const std::vector<amg::solver_report> reports = solver.solve(xs, bs); // spans of pointers to fields
    return report.converged() && std::ranges::all_of(reports, &amg::solver_report::converged);
}
