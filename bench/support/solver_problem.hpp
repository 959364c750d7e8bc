// SPDX-License-Identifier: Apache-2.0
// The problem that a bench of the multigrid solves: a gauge configuration, cut over the ranks, and an operator.
#pragma once

#include <halocline/amg/solver.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/dirac/gauge_configuration.hpp>
#include <halocline/dirac/padded_links.hpp>
#include <halocline/dirac/wilson_parameters.hpp>
#include <halocline/lattice/decomposition.hpp>
#include <halocline/lattice/gauge_file.hpp>
#include <halocline_app/demo_configuration.hpp>
#include <halocline_app/main.hpp>

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace halocline::bench {

/// What a command line may choose.
struct solver_problem_options {
    std::string gauge;
    dirac::wilson_parameters op;
    amg::solver_options solver;

    void add_to(CLI::App& cli) {
        cli.add_option("--gauge", gauge, "gauge file (default: the demo configuration, 8.8.8.8 at beta 6.0)");
        cli.add_option("--vectors", solver.vectors, "test vectors");
        cli.add_option("--setup", solver.setup_iterations, "bootstrap set-up iterations");
        cli.add_option("--m0", op.m0, "bare mass");
        cli.add_option("--csw", op.csw, "clover coefficient");
    }
};

/// The cut, and the links of this rank's box.
struct solver_problem {
    lattice::decomposition cut; ///< on block boundaries
    dirac::padded_links links;
};

/// Reads the configuration, or makes the demo's; fills in the blocks that were left to choose. Collective.
inline solver_problem load(const app::program& p, const comm::job& j, solver_problem_options& o) {
    if (o.gauge.empty()) { // takes some seconds: not for a job that can't use it
        (void)lattice::decomposition::chosen(app::demo_extents, j.ranks(), amg::default_blocks(app::demo_extents));
        o.gauge = app::demo_configuration(j, [&](std::string_view line) { p.print(line); });
    }
    lattice::gauge_file file;
    j.collectively([&] { file = lattice::open_gauge_file(o.gauge); });
    if (!o.solver.blocks) o.solver.blocks = amg::default_blocks(file.extents);
    auto cut = lattice::decomposition::chosen(file.extents, j.ranks(), *o.solver.blocks);
    dirac::padded_links links(j, cut, dirac::read_configuration(j, cut, file).links);
    return {std::move(cut), std::move(links)};
}

} // namespace halocline::bench
