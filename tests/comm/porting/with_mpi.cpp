// SPDX-License-Identifier: Apache-2.0
// The exchange before: once with MPI_Isend and MPI_Irecv, once with persistent requests.
#include "porting.hpp"

namespace porting {

void diffuse_isend(MPI_Comm comm, strip& u, int steps) {
    const auto [before, after] = neighbours(comm);
    const std::size_t rows = u.rows();
    const int width = static_cast<int>(u.row(0).size());

    for (int n = 0; n < steps; ++n) {
        MPI_Request requests[4];
        MPI_Irecv(u.row(0).data(), width, MPI_DOUBLE, before, up, comm, &requests[0]);
        MPI_Irecv(u.row(rows + 1).data(), width, MPI_DOUBLE, after, down, comm, &requests[1]);
        MPI_Isend(u.row(1).data(), width, MPI_DOUBLE, before, down, comm, &requests[2]);
        MPI_Isend(u.row(rows).data(), width, MPI_DOUBLE, after, up, comm, &requests[3]);
        u.update_interior();
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        u.update_boundary();
    }
}

void diffuse_persistent(MPI_Comm comm, strip& u, int steps) {
    const auto [before, after] = neighbours(comm);
    const std::size_t rows = u.rows();
    const int width = static_cast<int>(u.row(0).size());

    MPI_Request requests[4];
    MPI_Recv_init(u.row(0).data(), width, MPI_DOUBLE, before, up, comm, &requests[0]);
    MPI_Recv_init(u.row(rows + 1).data(), width, MPI_DOUBLE, after, down, comm, &requests[1]);
    MPI_Send_init(u.row(1).data(), width, MPI_DOUBLE, before, down, comm, &requests[2]);
    MPI_Send_init(u.row(rows).data(), width, MPI_DOUBLE, after, up, comm, &requests[3]);
    for (int n = 0; n < steps; ++n) {
        MPI_Startall(4, requests);
        u.update_interior();
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        u.update_boundary();
    }
    for (MPI_Request& r : requests) MPI_Request_free(&r);
}

} // namespace porting
