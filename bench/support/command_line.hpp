// SPDX-License-Identifier: Apache-2.0
// A bench is a program like those of apps/: one error for the job, the exit codes of docs/decisions/0035.
#pragma once

#include <halocline/base/error.hpp>
#include <halocline/comm/job.hpp>
#include <halocline_app/main.hpp>
#include <halocline_app/strict_flag.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <poll.h>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

namespace halocline::bench {

/// Has the reader of standard output, a pipe, left? Then it has read enough.
inline bool reader_left() {
    pollfd out{STDOUT_FILENO, POLLOUT, 0};
    return poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0;
}

/// The exit code of body(program, argc, argv), which returns one. Output that could not be printed is recorded as lost.
template <class Body>
int run_bench(int argc, char** argv, Body body) {
    return app::run_program(argc, argv, [&](app::program& p, int words, const char* const* word) {
        const int code = body(p, words, word);
        const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
        if (lost && !reader_left()) p.lose_output("standard output can't be written");
        return code;
    });
}

/// `--seconds` for `value`, which holds the default.  Parsing: Err: input_error.
inline void add_seconds(CLI::App& cli, double& value, const std::string& description) {
    app::add_real_flag(cli, "--seconds", value, 1e-3, 1e6, "seconds from 0.001 to 1000000", description);
}

/// `--rounds` for `value`, which holds the default.  Parsing: Err: input_error.
inline void add_rounds(CLI::App& cli, int& value, const std::string& description) {
    app::add_integer_flag(cli, "--rounds", value, 1, 1000000, description);
}

/// The last occurrence counts of each option that is there so far and does not gather everything (take_all), of lists,
/// too: who calls a script can replace what the script says. Otherwise CLI11 refuses a second value, and joins lists.
inline void later_replaces_earlier(CLI::App& cli) {
    for (CLI::Option* const option : cli.get_options()) {
        if (option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll) continue;
        if (option->get_items_expected_max() > 1)
            option->trigger_on_parse(); // each occurrence clears the one before
        else if (option->get_items_expected_max() == 1)
            option->take_last();
    }
}

/// Err: input_error: a provider of libfabric for a transport that would ignore it.
inline void require_ofi_for_provider(const std::string& transport, const std::string& provider) {
    if (!provider.empty() && transport != "ofi")
        throw input_error("--provider " + provider + ": of libfabric, for --transport ofi, not " + transport);
}

/// Collective. What is asked for is what is measured.
/// Err: input_error: $HALOCLINE_CONFIG or $HALOCLINE_COMM_TRANSPORTS chose another transport.
inline void require_transport(const comm::job& j, const std::string& asked) {
    j.collectively([&] {
        if (j.transport() != asked)
            throw input_error("transport " + asked +
                              " is to be measured, but the environment or its config file chose " + j.transport());
    });
}

/// What is named twice would be measured twice, and its lines could not be told apart.
/// Err: input_error: two of the flag's values are equal.
template <class Value>
void require_distinct(const std::string& flag, const std::vector<Value>& values) {
    for (auto v = values.begin(); v != values.end(); ++v) {
        if (std::find(values.begin(), v, *v) == v) continue;
        std::ostringstream twice;
        twice << *v;
        throw input_error(flag + ": '" + twice.str() + "' is named twice");
    }
}

/// For an option: the bytes of messages that are stamped word by word.
inline const auto whole_words = [](const std::string& text) {
    const auto multiple = [](const std::string& t) { return std::stoull(t) % 8 == 0; };
    const bool digits = !text.empty() && text.size() < 12 && text.find_first_not_of("0123456789") == std::string::npos;
    return digits && multiple(text) && text != "0" ? ""
                                                   : "expected bytes, a multiple of 8 from 8 on, not '" + text + "'";
};

/// For an option: a name that is not empty.
inline const auto not_empty = [](const std::string& text) { return text.empty() ? "expected FILE, not ''" : ""; };

} // namespace halocline::bench
