// SPDX-License-Identifier: Apache-2.0
// The facts with which every line of JSON ends: what was measured, where and how. Without a job, for MPI programs and
// benches of one rank; of jobs: support/probed_facts.hpp.
#pragma once

#include "support/json_line.hpp"

#include <halocline/comm/processors.hpp>

#include <array>
#include <cstdlib>
#include <string>
#include <unistd.h>

namespace halocline::bench {

/// What is measured: $HALOCLINE_BENCH_GIT, as scripts/bench.sh sets it for all benches.
inline std::string measured_git() {
    const char* const text = std::getenv("HALOCLINE_BENCH_GIT");
    return text == nullptr || *text == '\0' ? "unknown" : text;
}

struct run_facts {
    std::string host, git = measured_git();
    bool pinned = false; ///< each rank is bound to a processor of its own

    /// "pinned", "host", "compiler", "git".
    [[nodiscard]] json_line line() const {
        json_line facts;
        facts.add("pinned", pinned).add("host", host).add("compiler", __VERSION__).add("git", git);
        return facts;
    }
};

/// The facts of a program whose only rank, or whose rank that prints, is this process.
inline run_facts facts_of_process() {
    std::array<char, 256> host{};
    const bool named = gethostname(host.data(), host.size() - 1) == 0;
    return {.host = named ? host.data() : "localhost", .pinned = comm::usable_processors().size() == 1};
}

} // namespace halocline::bench
