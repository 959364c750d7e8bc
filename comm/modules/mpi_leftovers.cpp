// SPDX-License-Identifier: Apache-2.0
// Messages that a job's end leaves over: sent to an end that its rank never connected. A program must not enter
// MPI_Finalize while its own sends are pending (MPI 4.0, "Finalizing MPI"), and MPICH over the UCX of Ubuntu 24.04
// aborts if it does. So their targets receive them, into memory that is thrown away.
#include "mpi_state.hpp"

#include <chrono>
#include <new>
#include <vector>

#include <sched.h>

namespace {

using steady = std::chrono::steady_clock;

struct discarded {
    std::unique_ptr<unsigned char[]> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
};

// Never destroyed: jobs may end, and programs call MPI_Finalize, in destructors that run later than this module's.
auto& channels = *new std::vector<halocline_mpi_channel*>; // with requests under way
auto& communicators = *new std::vector<MPI_Comm>;          // in which messages may be on their way here
auto& arriving = *new std::vector<discarded>;              // MPI may write there as long as it runs

/// Begins to receive the next message that nobody has received, if there is one.
bool begin_one(MPI_Comm from) {
    int found = 0, bytes = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, from, &found, &status) != MPI_SUCCESS || found == 0) return false;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    if (bytes == MPI_UNDEFINED) return false; // more than 2 GiB
    discarded d{std::unique_ptr<unsigned char[]>(new (std::nothrow) unsigned char[static_cast<unsigned>(bytes)])};
    if (!d.bytes || MPI_Irecv(d.bytes.get(), bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, from, &d.request))
        return false;
    arriving.push_back(std::move(d));
    return true;
}

} // namespace

void leave_over(halocline_mpi_channel* channel) { channels.push_back(channel); }
void leave_over(MPI_Comm communicator) { communicators.push_back(communicator); }

void settle_leftovers(bool together) {
    using namespace std::chrono_literals;
    if (!together && channels.empty() && communicators.empty()) return;
    const auto begin = steady::now();
    auto quiet_since = begin;
    for (int goes_on = 1; goes_on != 0;) {
        for (const MPI_Comm from : communicators)
            if (begin_one(from)) quiet_since = steady::now();
        std::erase_if(arriving, [](discarded& d) {
            int done = 0;
            return MPI_Test(&d.request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0;
        });
        std::erase_if(channels, [](halocline_mpi_channel* channel) {
            const bool idle = is_idle(*channel);
            if (idle) delete channel;
            return idle;
        });
        const auto now = steady::now();
        // Alone, a rank can't know whether more will be sent.
        const bool expects = !arriving.empty() || (!communicators.empty() && now - quiet_since < 10ms);
        goes_on = (!channels.empty() || expects) && now - begin < 2s ? 1 : 0;
        if (together && MPI_Allreduce(MPI_IN_PLACE, &goes_on, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD) != MPI_SUCCESS)
            return;
        if (goes_on != 0) sched_yield();
    }
}
