// SPDX-License-Identifier: Apache-2.0
// Who is under test: a name on the command line picks the transport, the job says how ranks are made. One binary, many
// runs: `comm_contract_test shm threads=4` (`signals`: while 1000 signals a second come), `halocline-run -n 4 --
// comm_contract_test ofi-tcp`, `mpirun … mpi`. A transport joins the suite by a line in `known` and a line in
// contract/CMakeLists.txt.
#pragma once

#include <halocline/comm/job.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace halocline_test {

using namespace halocline::comm;

struct contender {
    std::string_view name;
    std::string_view transport; ///< what serves the peers
    std::string_view provider;  ///< of libfabric
    std::uint64_t steps;        ///< that one second is enough for, on two ranks with a core each
    mpi_mode mpi = mpi_mode::two_sided;
};

inline constexpr contender known[] = {
    {"self", "self", "", 100'000},
    {"shm", "shm", "", 100'000},
    {"verbs", "verbs", "", 300}, // that is in an emulated machine
    {"ofi-tcp", "ofi", "tcp;ofi_rxm", 10'000},
    {"ofi-shm", "ofi", "shm", 10'000},
    {"ofi-tagged", "ofi", "tcp;ofi_rxm,tagged", 5'000}, // as for a provider without RMA
    {"mpi", "mpi", "", 20'000},
    {"mpi-one-sided", "mpi", "", 3'000, mpi_mode::one_sided},
};

/// The one on the command line.
const contender& under_test();
/// Ranks as threads of this process; 0: this process is one rank of a job that a launcher started.
int thread_ranks();
job_options options_under_test();
/// `most` steps, or what this contender does in about a second with `ranks` ranks on this machine.
std::uint64_t steps(std::uint64_t most, int ranks);

/// Runs `body` on every rank, on a job of its own. A rank leaves when all are done with it.
void on_every_rank(const std::function<void(const job&)>& body);

} // namespace halocline_test
