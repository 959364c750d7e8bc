// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of one test: shared memory, small slabs, and a deadline well below ctest's.
#pragma once

#include <halocline/comm/job.hpp>
#include <halocline_test/refusal.hpp>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace halocline_test {

inline halocline::comm::job_options small_job() {
    halocline::comm::job_options options;
    options.transports = {"shm"};
    options.slab_bytes = 64 << 20;
    options.deadline = std::chrono::seconds(20);
    return options;
}

inline void run(int ranks, const std::function<void(const halocline::comm::job&)>& body) {
    halocline::comm::run_threads(ranks, body, small_job());
}

/// The error of each rank that refuses the input of `body`; "accepted" if it doesn't.
inline std::vector<std::string> refusals(int ranks, const std::function<void(const halocline::comm::job&)>& body) {
    std::vector<std::string> texts(static_cast<std::size_t>(ranks));
    run(ranks, [&](const halocline::comm::job& j) { texts[j.rank()] = refusal([&] { body(j); }); });
    return texts;
}

} // namespace halocline_test
