// SPDX-License-Identifier: Apache-2.0
// The networks of a job as seen by one rank: its world on each.
#pragma once

#include <functional>
#include <memory>

namespace halocline::comm {

class mpi_world;
class ofi_world;
class verbs_world;

struct job_networks {
    std::shared_ptr<mpi_world> mpi;     ///< the MPI that started this job, if one did
    std::shared_ptr<verbs_world> verbs; ///< if it was requested and works on this rank
    std::shared_ptr<ofi_world> ofi;     ///< if it was requested and works on this rank
    /// Do channels try their connections before the first message? Same on every rank: true if any rank has one of
    /// these.
    bool greet = false;
    /// Is a peer served by a network that makes progress only when polled (ofi, mpi)?
    bool move_when_asked = false;

    /// Polls those networks.
    void poll() noexcept;
    /// Gives back what closed channels have left, once nobody writes there any more.
    void sweep() noexcept;
    /// At the end of the job: sends the last messages and farewells of closed channels.  `ended`: the job is over;
    /// `alone`: every other rank has left.
    void finish(const std::function<bool()>& ended, const std::function<bool()>& alone) noexcept;
    /// Closes all but MPI, which the program may continue to use.
    void close() noexcept;
};

} // namespace halocline::comm
