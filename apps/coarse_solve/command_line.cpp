// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"

#include <CLI/CLI.hpp>

#include <array>
#include <utility>

namespace halocline::app {

command_line read_command_line(const program& p, int argc, const char* const* argv) {
    // Each flag is another name of a key in the settings table, which reads and checks the value.
    static constexpr std::array<std::pair<const char*, const char*>, 15> flags{{
        {"--gauge", "lattice.gauge"},
        {"--grid", "lattice.grid"},
        {"--tile", "lattice.tile"},
        {"--mpi", "lattice.mpi"},
        {"--m0", "operator.m0"},
        {"--csw", "operator.csw"},
        {"--rhs", "solver.rhs"},
        {"--seed", "solver.seed"},
        {"--tol", "solver.tolerance"},
        {"--max-iterations", "solver.max_iterations"},
        {"--blocks", "level.0.blocks"},
        {"--vectors", "level.0.vectors"},
        {"--setup", "level.0.setup"},
        {"--transport", "comm.transports"},
        {"--deadline-ms", "faults.deadline_ms"},
    }};

    CLI::App cli{"Solves D x = b for the Wilson-clover operator with a two-level multigrid over halo plans.\n"
                 "Four numbers are in the order x.y.z.t. Exit code: 0 converged, 1 not converged, 2 bad input, 3 a "
                 "rank died or a deadline passed."};
    command_line result;
    std::string config;
    cli.add_option("config", config, "config file (configs/demo.toml explains every key)");
    std::array<std::string, flags.size()> texts;
    std::array<CLI::Option*, flags.size()> options{};
    for (std::size_t i = 0; i < flags.size(); ++i) {
        std::string description;
        for (const auto& key : setting_keys())
            if (key.path() == flags[i].second) description = key.description;
        options[i] = cli.add_option(flags[i].first, texts[i], description);
    }
    cli.add_flag("--dry-run", result.dry_run, "print the decomposition and why, memory and messages, and stop");
    cli.add_option("--json", result.json, "write the result as one JSON object to this file");

    p.parse(cli, argc, argv);
    if (!config.empty()) result.reader.read_file(config);
    result.reader.read_environment();
    for (std::size_t i = 0; i < flags.size(); ++i)
        if (options[i]->count() > 0) result.reader.set(flags[i].second, texts[i], flags[i].first);
    result.reader.check();
    return result;
}

} // namespace halocline::app
