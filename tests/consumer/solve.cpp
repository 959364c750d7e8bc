// SPDX-License-Identifier: Apache-2.0
// docs/solving.md shows this program (consumer.readme compares them).
#include <halocline/amg/solver.hpp>
#include <halocline/comm/run_job.hpp>
#include <halocline/dirac/gauge_configuration.hpp>

#include <iostream>

using namespace halocline;

int solve(const comm::job& job, const char* path) {
    const auto file = dirac::open_configuration(job, path); // ILDG, or another format
    const auto blocks = amg::default_blocks(file.extents);  // Schwarz blocks; ranks own whole ones
    const auto cut = lattice::decomposition::chosen(file.extents, job.ranks(), blocks);
    const dirac::padded_links links(job, cut, dirac::read_configuration(job, cut, file).links);

    amg::solver solver(job, cut, links, {.m0 = -0.5, .csw = 1}); // antiperiodic in t
    solver.setup();

    const lattice::coordinate local = cut.local_box(job.rank()).extents;
    lattice::field<double> x(local, lattice::spinor_components), b(local, lattice::spinor_components);
    if (cut.owner({0, 0, 0, 0}) == job.rank()) b.at(0, 0) = 1; // a point source: spin 0, colour 0
    const auto report = solver.solve(x, b);
    if (job.rank() == 0)
        std::cout << solvers::to_string(report.outer.status) << " after " << report.outer.iterations
                  << " iterations, |b - D x| / |b| = " << report.outer.relative_residual << '\n';
    return report.converged() ? 0 : 1;
}

int main(int argc, char** argv) { // a missing file, say, is told once, and ends all ranks
    return comm::run_job([&](const comm::job& job) { return solve(job, argc > 1 ? argv[1] : "config.ildg"); });
}
