// SPDX-License-Identifier: Apache-2.0
// The command line of bench_p2p.
#pragma once

#include "limits.hpp"
#include "support/command_line.hpp"
#include "support/run_facts.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/messenger.hpp>

#include <CLI/CLI.hpp>

#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

namespace halocline::bench::p2p {

struct bench_options {
    double seconds = 170;
    int rounds = 25; ///< of slices so short that the machine seldom changes its mode within a round
    std::vector<std::string> compare;
    std::vector<std::string> patterns{"latency", "one-way", "both-ways", "overhead"};
    std::vector<std::size_t> sizes{8, 64, 256, 512, 1024, 2048, 4096, 8192, 32768, 131072, 524288, 2097152, 8388608};
    std::string json, svg, git = measured_git();
    std::vector<std::string> peers;
    std::string transport = "shm", provider; ///< provider: of libfabric, "" is its choice
    comm::messenger_options messages;
};

/// Err: input_error.
inline bench_options parse(const app::program& program, int argc, const char* const* argv) {
    bench_options o;
    CLI::App cli("What does a message between two cores cost, by size?", "bench_p2p");
    bool quick = false;
    cli.add_option("--transport", o.transport, "of ours: shm, ofi, mpi or verbs")->check(not_empty);
    cli.add_option("--provider", o.provider, "of libfabric, for --transport ofi")->check(not_empty);
    add_seconds(cli, o.seconds, "of the whole run");
    cli.add_option("--patterns", o.patterns, "of messages")
        ->delimiter(',')
        ->check(CLI::IsMember({"latency", "one-way", "both-ways", "overhead"}));
    cli.add_option("--sizes", o.sizes, "of messages, in bytes")
        ->delimiter(',')
        ->check(whole_words)
        ->check(CLI::Range(std::size_t{8}, pair_memory::largest));
    cli.add_flag("--quick", quick, "a smoke test of everything: by default 1 s, one round, 8 B and 128 KiB");
    cli.add_option("--json", o.json, "lines of JSON go here instead of standard output")->check(not_empty);
    cli.add_option("--svg", o.svg, "file of a chart")->check(not_empty);
    cli.add_option("--git", o.git, "what is measured (default: $HALOCLINE_BENCH_GIT)");
    cli.add_option("--peer", o.peers, "NAME=COMMAND: the same messages by an MPI take turns")->take_all();
    cli.add_option("--compare", o.compare,
                   "IMMEDIATE,SYNERGISTIC,STREAMED: our messages with these thresholds take part, too")
        ->take_all();
    later_replaces_earlier(cli);
    program.parse(cli, argc, argv);
    require_ofi_for_provider(o.transport, o.provider);
    require_distinct("--patterns", o.patterns);
    require_distinct("--sizes", o.sizes);
    require_distinct("--compare", o.compare);
    if (!quick) return o;
    o.rounds = 1;
    if (cli.count("--seconds") == 0) o.seconds = 1;
    if (cli.count("--sizes") == 0) o.sizes = {8, 131072};
    return o;
}

/// Parses one --compare.  Err: input_error.
inline comm::messenger_options thresholds(const std::string& text) {
    const auto refuse = [&] {
        throw input_error("--compare " + text + ": expected IMMEDIATE,SYNERGISTIC,STREAMED: bytes up to " +
                          std::to_string(comm::messenger_options::largest_immediate) + ", and twice from 1 to 2^30");
    };
    const auto number = [&](const std::string& part, std::size_t least, std::size_t most) {
        const bool digits =
            !part.empty() && part.size() < 12 && part.find_first_not_of("0123456789") == std::string::npos;
        const std::size_t n = digits ? std::stoul(part) : 0;
        if (!digits || n < least || n > most) refuse();
        return n;
    };
    std::vector<std::string> parts;
    std::stringstream list(text);
    for (std::string item; std::getline(list, item, ',');) parts.push_back(item);
    if (parts.size() != 3) refuse();
    comm::messenger_options o;
    o.immediate_bytes = number(parts[0], 0, comm::messenger_options::largest_immediate);
    o.synergistic_bytes = number(parts[1], 1, 1 << 30);
    o.streamed_bytes = number(parts[2], 1, 1 << 30);
    return o;
}

} // namespace halocline::bench::p2p
