// SPDX-License-Identifier: Apache-2.0
// What is under test: a name on the command line picks the transport, the job determines how ranks are made. One
// binary, many runs: `comm_contract_test shm threads=4` (`signals`: while 1000 signals a second arrive), `halocline-run
// -n 4 -- comm_contract_test ofi-tcp`, `mpirun … mpi`. A transport joins the suite by a line in named_transport.hpp and
// one in contract/CMakeLists.txt.
#pragma once

#include "../named_transport.hpp"

#include <halocline/comm/job.hpp>

#include <cstdint>
#include <functional>

namespace halocline_test {

using namespace halocline::comm;

/// The transport named on the command line.
const named_transport& under_test();
/// Ranks as threads of this process; 0: this process is one rank of a job that a launcher started.
int thread_ranks();
job_options options_under_test();
/// `most` steps; fewer, which is printed, if they would take long: more ranks than cores, an emulated device, a
/// sanitizer.
std::uint64_t steps(std::uint64_t most, const job& j);

/// Runs `body` on every rank, on a job of its own. A rank leaves only when all have finished the body.
void on_every_rank(const std::function<void(const job&)>& body);

} // namespace halocline_test
