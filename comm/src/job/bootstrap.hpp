// SPDX-License-Identifier: Apache-2.0
// How a rank learns who it is and first reaches the others. A launcher provides a rank number and a gather of a few
// bytes; everything after that goes over the ranks' own sockets (socket_plane). All ranks call gather equally often.
#pragma once

#include "job_core.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace halocline::comm {

class mpi_world;

struct bootstrap {
    int rank = 0, ranks = 1;
    std::string launcher;
    int launcher_end = -1; ///< a socket that hangs up when the launcher ends, or takes this rank for ended; -1: none
    /// Bytes of every rank, by rank. Limited by the deadline; notices ranks that died.  Err: rank_failure, job_error.
    std::function<std::vector<std::string>(std::string_view mine)> gather;
    /// The MPI that started the job, if one did.
    std::shared_ptr<mpi_world> mpi;
};

inline constexpr std::string_view local_launcher = "halocline-run";
/// The job of halocline-run, if that started this process.
std::optional<bootstrap> local_bootstrap(const job_options& options);
/// The job of a launcher with a PMIx server, if one started this process: no MPI is involved. (pmix/)
std::optional<bootstrap> pmix_bootstrap(const job_options& options);
[[nodiscard]] bool pmix_is_built();
/// The job of an MPI launcher, if one started this process. (mpi/bootstrap.cpp)
std::optional<bootstrap> mpi_bootstrap(const job_options& options);
/// The ranks of the program's MPI_Comm, given by its address. (mpi/bootstrap.cpp)
bootstrap mpi_bootstrap(const void* communicator, std::size_t bytes, const job_options& options);

/// Makes the job: slabs, sockets between all ranks, networks, the choice of transports, measured costs. Collective.
/// Err: input_error, the same on every rank, if one can't take part.
std::shared_ptr<job_core> join(bootstrap start, const job_options& options);

} // namespace halocline::comm
