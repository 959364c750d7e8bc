// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of one test: shared memory, small slabs, and a deadline well below ctest's.
#pragma once

#include <halocline/comm/job.hpp>

#include <chrono>
#include <functional>

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

} // namespace halocline_test
