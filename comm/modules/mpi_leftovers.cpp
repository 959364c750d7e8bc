// SPDX-License-Identifier: Apache-2.0
// Messages that a job's end leaves over: sent to an end that its rank never connected. A program must not enter
// MPI_Finalize while its own sends are pending (MPI 4.0, section 11.2.2), and MPICH over UCX 1.16 aborts if it does. So
// their targets receive them, into memory that is thrown away.
#include "mpi_state.hpp"

#include <chrono>
#include <new>
#include <vector>

#include <sched.h>

namespace {

using steady = std::chrono::steady_clock;

std::vector<halocline_mpi_channel*> channels; // with requests under way
std::vector<MPI_Comm> communicators;          // in which messages may be on their way here

bool receive_one(MPI_Comm from) {
    int found = 0, bytes = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, from, &found, &status) != MPI_SUCCESS || found == 0) return false;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    if (bytes == MPI_UNDEFINED) return false; // more than 2 GiB
    const auto memory =
        std::unique_ptr<unsigned char[]>(new (std::nothrow) unsigned char[static_cast<unsigned>(bytes)]);
    return memory && MPI_Recv(memory.get(), bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, from,
                              MPI_STATUS_IGNORE) == MPI_SUCCESS;
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
            while (receive_one(from)) quiet_since = steady::now();
        std::erase_if(channels, [](halocline_mpi_channel* channel) {
            const bool idle = is_idle(*channel);
            if (idle) delete channel;
            return idle;
        });
        const auto now = steady::now();
        // What is small was sent before this began, and is here soon. Alone, a rank can't know who sends large messages.
        const bool expects = !communicators.empty() && now - quiet_since < 10ms;
        goes_on = (!channels.empty() || expects) && now - begin < 2s ? 1 : 0;
        if (together && MPI_Allreduce(MPI_IN_PLACE, &goes_on, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD) != MPI_SUCCESS)
            return;
        if (goes_on != 0) sched_yield();
    }
}
