// SPDX-License-Identifier: Apache-2.0
// The main() of a program that is one rank of a job (docs/decisions/0054-how-a-program-ends.md).
#pragma once

#include <halocline/comm/job.hpp>

#include <functional>
#include <type_traits>

namespace halocline::comm {

/// Ends a program by the exception under way, as run_job() does: tells it, ends the job, and returns the exit code. For
/// a main() of another shape; call it in a catch block.
/// `j`: the rank's job; nullptr: the exception is of job::from_environment().
int end_by_exception(const job* j);

/// run_job() for a body that returns an exit code.
int run_body(const std::function<int(const job&)>& body, const job_options& options);

/// `int main() { return comm::run_job([](const comm::job& job) { … }); }`: joins the job of the environment, calls
/// body(job), and returns what that returns; 0 if it returns nothing. Collective.
/// An exception becomes a line on stderr and ends the job, so that nobody waits longer. Of bad input that all ranks find
/// alike one rank tells, as a rule the lowest. Any other exception is told by the rank that threw it, and once more by
/// each rank that waited for it. The exit code is 2 after input_error, 3 after job_error (also that of ranks that
/// waited), else 1.
/// Cost: of an exception up to 0.3 s.
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
