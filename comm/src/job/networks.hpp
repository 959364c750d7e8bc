// SPDX-License-Identifier: Apache-2.0
// The networks of a job, as one rank has them: its world on each.
#pragma once

#include <functional>
#include <memory>

namespace halocline::comm {

class mpi_world;
class ofi_world;
class verbs_world;

struct job_networks {
    std::shared_ptr<mpi_world> mpi;     ///< that started this job, if one did
    std::shared_ptr<verbs_world> verbs; ///< if it was asked for and this rank can
    std::shared_ptr<ofi_world> ofi;     ///< likewise
    /// Do channels try their connections before the first message? Same on every rank: where any has one of these.
    bool greet = false;
    /// Is a peer served by one that moves nothing unless it is asked (ofi, mpi)?
    bool move_when_asked = false;

    /// Asks those.
    void poll() noexcept;
    /// Gives back what closed channels have left, where nobody writes any more.
    void sweep() noexcept;
    /// The end of the job: the last messages and farewells of closed channels leave.  `ended`: the job is over;
    /// `alone`: or every other rank has left.
    void finish(const std::function<bool()>& ended, const std::function<bool()>& alone) noexcept;
    /// All but MPI, which the program may go on using.
    void close() noexcept;
};

} // namespace halocline::comm
