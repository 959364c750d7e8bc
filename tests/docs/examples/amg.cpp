// SPDX-License-Identifier: Apache-2.0
// The examples of amg/README.md, compiled (docs.readmes compares them).
#include <halocline/amg/solver.hpp>

using namespace halocline;

bool solve(const comm::job& job, const lattice::decomposition& cut, const dirac::padded_links& links,
           lattice::field<double>& x, const lattice::field<double>& b);

bool solve(const comm::job& job, const lattice::decomposition& cut, const dirac::padded_links& links,
           lattice::field<double>& x, const lattice::field<double>& b) {
    amg::solver solver(job, cut, links, {.m0 = -0.5, .csw = 1});
    solver.setup();
    const amg::solver_report report = solver.solve(x, b); // report.converged(), report.coarse.halo_seconds, …
    return report.converged();
}
