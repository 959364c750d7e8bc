// SPDX-License-Identifier: Apache-2.0
// Command lines of benches: --help, options by name; anything else is told and refused with exit code 2, as by the
// programs (docs/running.md).
#pragma once

#include <halocline/base/error.hpp>

#include <CLI/CLI.hpp>

#include <cstdio>
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

/// The exit code of `body`, which returns one; an exception is told on stderr: 2 bad input, 3 the job's end, 1 another.
template <class Body>
int guarded(const char* name, Body body) {
    const auto told = [&](const std::exception& e, int code) {
        std::fprintf(stderr, "%s: %s\n", name, e.what());
        return code;
    };
    try {
        const int code = body();
        if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) throw error("standard output can't be written");
        return code;
    } catch (const input_error& e) {
        return told(e, 2);
    } catch (const job_error& e) {
        return told(e, 3);
    } catch (const std::exception& e) {
        return told(e, 1);
    }
}

/// Of an option: a name that is not empty.
inline const auto not_empty = [](const std::string& text) { return text.empty() ? "expected FILE, not ''" : ""; };

} // namespace halocline::bench
