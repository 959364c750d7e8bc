// SPDX-License-Identifier: Apache-2.0
#include "command_line.hpp"

#include <halocline_app/strict_flag.hpp>

#include <CLI/CLI.hpp>

#include <array>
#include <string>
#include <vector>

namespace halocline::app {

command_line read_command_line(const program& p, int argc, const char* const* argv) {
    // Each flag is another name of a key in the settings table, which reads and checks the value.
    struct flag {
        const char *name, *key, *value;
        bool is_list = false; // then it may be given several times
    };
    static constexpr std::array<flag, 16> flags{{
        {"--gauge", "lattice.gauge", "FILE"},
        {"--grid", "lattice.grid", "x.y.z.t"},
        {"--tile", "lattice.tile", "x.y.z.t"},
        {"--mpi", "lattice.mpi", "x.y.z.t"},
        {"--m0", "operator.m0", "REAL"},
        {"--csw", "operator.csw", "REAL"},
        {"--rhs", "solver.rhs", "NAME|file:PATH ...", true},
        {"--at-once", "solver.at_once", "N"},
        {"--seed", "solver.seed", "N"},
        {"--tol", "solver.tolerance", "REAL"},
        {"--max-iterations", "solver.max_iterations", "N"},
        {"--blocks", "level.0.blocks", "x.y.z.t"},
        {"--vectors", "level.0.vectors", "N"},
        {"--setup", "level.0.setup", "N"},
        {"--transport", "comm.transports", "LIST"},
        {"--deadline-ms", "faults.deadline_ms", "N"},
    }};

    CLI::App cli{
        "Solves D x = b for the Wilson-clover operator with a two-level multigrid over halo plans.\n"
        "Keys without a flag stand in the config file, or in the environment: HALOCLINE_<SECTION>_<KEY>.\n"
        "Exit code: 0 converged, 1 not converged or a result not written, 2 bad input, 3 a rank died or a deadline "
        "passed.",
        p.name()};
    command_line result;
    add_text_flag(cli, "config", result.config, "FILE", "config file (configs/demo.toml explains every key)");
    std::array<std::vector<std::string>, flags.size()> texts;
    std::array<CLI::Option*, flags.size()> options{};
    const settings defaults;
    for (std::size_t i = 0; i < flags.size(); ++i) {
        const std::string otherwise = value_of(flags[i].key, defaults);
        options[i] = cli.add_option(flags[i].name, texts[i], key_of(flags[i].key).description);
        options[i]->allow_extra_args(false); // else the config file would be one more value of the flag before it
        if (!flags[i].is_list) options[i]->expected(1);
        options[i]->option_text(flags[i].value + (otherwise.empty() ? "" : " (" + otherwise + ")"));
    }
    for (const std::string other : {"--kappa", "--mass"}) {
        const auto refuse = [=](const std::string&) {
            throw input_error("unknown flag '" + other + "'; " + mass_convention);
        };
        cli.add_option_function<std::string>(other, refuse)->group(""); // --help does not show it
    }
    constexpr const char* reunitarise = "lattice.reunitarise";
    std::string switched_to; // "true" if the flag has no value
    const CLI::Option* const switch_on = cli.add_flag("--reunitarise", switched_to, key_of(reunitarise).description);
    cli.add_flag("--dry-run", result.dry_run, "print the decomposition and why, memory and messages, and stop");
    add_text_flag(cli, "--solution", result.solution, "FILE",
                  "write the solution to this file, in SciDAC's format; of several, FILE's "
                  "ending gets a number in front: x.00.lime");
    add_text_flag(cli, "--json", result.json, "FILE",
                  "write the result to this file as one JSON object, or one in a line for each right-hand side");

    p.parse(cli, argc, argv);
    result.reader.read_surroundings(result.config, config::other_sections::refused);
    for (std::size_t i = 0; i < flags.size(); ++i) {
        if (options[i]->count() == 0) continue;
        for (const std::string& text : texts[i]) {
            refuse_empty(flags[i].name, text, flags[i].value);
            if (flags[i].is_list) read_flag(flags[i].name, text, read_right_hand_sides); // each, before they are joined
        }
        result.reader.set(flags[i].key, config::show_list(texts[i]), flags[i].name);
    }
    if (switch_on->count() > 0) result.reader.set(reunitarise, switched_to, "--reunitarise");
    result.reader.check();
    return result;
}

} // namespace halocline::app
