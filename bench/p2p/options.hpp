// SPDX-License-Identifier: Apache-2.0
// The command line of bench_p2p.
#pragma once

#include "limits.hpp"
#include "support/run_facts.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/messenger.hpp>

#include <cstddef>
#include <exception>
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

inline constexpr const char* usage_text = "usage: bench_p2p [--transport shm|ofi|mpi|verbs] [--provider NAME] "
                                          "[--seconds S] [--patterns latency,one-way,both-ways,overhead] "
                                          "[--sizes 8,64,...] [--quick] [--json FILE] [--svg FILE] [--git HASH] "
                                          "[--peer NAME=COMMAND]... [--compare IMMEDIATE,SYNERGISTIC,STREAMED]...\n"
                                          "--compare: our messages with other thresholds take part, too";

[[noreturn]] inline void usage(const std::string& wrong) { throw input_error(wrong + "\n" + usage_text); }

inline std::size_t number(const std::string& text, std::size_t least, std::size_t most) {
    std::size_t end = 0, n = 0;
    try {
        n = std::stoul(text, &end);
    } catch (const std::exception&) {
        end = 0;
    }
    if (end != text.size() || n < least || n > most)
        usage("'" + text + "' is no number from " + std::to_string(least) + " to " + std::to_string(most));
    return n;
}

/// Err: input_error, with the usage.
inline bench_options parse(int argc, const char* const* argv) {
    bench_options o;
    for (int i = 1; i < argc; ++i) {
        const std::string flag = argv[i];
        if (flag == "--quick") { // a smoke test of everything
            o.seconds = 1;
            o.rounds = 1;
            o.sizes = {8, 131072};
            continue;
        }
        if (i + 1 == argc) usage("'" + flag + "' is unknown or lacks its value");
        const std::string value = argv[++i];
        if (value.empty()) usage("'" + flag + "' lacks its value");
        const auto each = [&](auto&& take) {
            std::stringstream list(value);
            for (std::string item; std::getline(list, item, ',');) take(item);
        };
        if (flag == "--seconds")
            o.seconds = static_cast<double>(number(value, 1, 100'000));
        else if (flag == "--json")
            o.json = value;
        else if (flag == "--svg")
            o.svg = value;
        else if (flag == "--git")
            o.git = value;
        else if (flag == "--transport")
            o.transport = value;
        else if (flag == "--provider")
            o.provider = value;
        else if (flag == "--peer")
            o.peers.push_back(value);
        else if (flag == "--compare")
            o.compare.push_back(value);
        else if (flag == "--patterns") {
            o.patterns.clear();
            each([&](const std::string& item) {
                if (item != "latency" && item != "one-way" && item != "both-ways" && item != "overhead")
                    usage("no pattern '" + item + "'");
                o.patterns.push_back(item);
            });
        } else if (flag == "--sizes") {
            o.sizes.clear();
            each([&](const std::string& item) {
                o.sizes.push_back(number(item, 8, pair_memory::largest));
                if (o.sizes.back() % 8 != 0) usage("--sizes " + item + ": must be a multiple of 8");
            });
        } else
            usage("unknown option '" + flag + "'");
    }
    return o;
}

/// Parses one --compare.  Err: input_error.
inline comm::messenger_options thresholds(const std::string& text) {
    std::vector<std::string> parts;
    std::stringstream list(text);
    for (std::string item; std::getline(list, item, ',');) parts.push_back(item);
    if (parts.size() != 3) usage("--compare " + text + ": expected IMMEDIATE,SYNERGISTIC,STREAMED");
    comm::messenger_options o;
    o.immediate_bytes = number(parts[0], 0, comm::messenger_options::largest_immediate);
    o.synergistic_bytes = number(parts[1], 1, 1 << 30);
    o.streamed_bytes = number(parts[2], 1, 1 << 30);
    return o;
}

} // namespace halocline::bench::p2p
