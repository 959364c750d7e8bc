// SPDX-License-Identifier: Apache-2.0
// The main() of a program that is one rank of a job.
#pragma once

#include <halocline/comm/job.hpp>

#include <functional>
#include <type_traits>

namespace halocline::comm {

/// run_job() for a body that returns an exit code.
int run_body(const std::function<int(const job&)>& body, const job_options& options);

/// `int main() { return comm::run_job([](const comm::job& job) { … }); }`: joins the job of the environment, calls
/// body(job), and returns what that returns; 0 if it returns nothing. Collective.
/// An exception becomes a line on stderr: of bad input that all ranks find alike one of the lowest of them, as a rule; of
/// another exception one of the rank that threw it, and one of each rank that waited for it. Nobody waits longer: the job
/// is aborted. The exit code is then 2 after input_error, 3 after job_error, else 1, on every rank.
/// Cost: of an exception up to 0.2 s.
template <class Body>
int run_job(Body&& body, const job_options& options = {}) {
    return run_body(
        [&](const job& j) -> int {
            if constexpr (std::is_void_v<std::invoke_result_t<Body&, const job&>>) {
                body(j);
                return 0;
            } else {
                return body(j);
            }
        },
        options);
}

} // namespace halocline::comm
