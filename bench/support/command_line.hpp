// SPDX-License-Identifier: Apache-2.0
// Command lines of benches: --help, options by name; anything else is told and refused with exit code 2.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>

namespace halocline::bench {

/// The exit code if the program ends here: 0 after --help, 2 after a command line that is wrong.
inline std::optional<int> parse(CLI::App& app, int argc, char** argv) {
    try {
        app.parse(argc, argv);
        return std::nullopt;
    } catch (const CLI::ParseError& over) {
        return app.exit(over) == 0 ? 0 : 2;
    }
}

} // namespace halocline::bench
