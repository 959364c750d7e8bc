// SPDX-License-Identifier: Apache-2.0
// The exchanges before: derived datatypes.
#include "porting.hpp"

namespace porting {
namespace {

/// One layer of an array, at a position of dimension mu: -1 and local[mu] are ghosts.
MPI_Datatype layer(const extents& local, int mu, int position) {
    extents sizes, subsizes, starts; // MPI's C order has the last dimension fastest
    for (int nu = 0; nu < 4; ++nu) {
        sizes[3 - nu] = local[nu] + 2;
        subsizes[3 - nu] = nu == mu ? 1 : local[nu];
        starts[3 - nu] = nu == mu ? position + 1 : 1;
    }
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_create_subarray(4, sizes.data(), subsizes.data(), starts.data(), MPI_ORDER_C, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    return type;
}

} // namespace

void diffuse_with_mpi(MPI_Comm cart, padded_array& u, int steps) {
    const extents& local = u.local();
    for (int n = 0; n < steps; ++n) {
        double* array = u.array(u.turn());
        for (int mu = 0; mu < 4; ++mu) {
            int low = 0, high = 0;
            MPI_Cart_shift(cart, mu, 1, &low, &high);
            MPI_Datatype types[] = {layer(local, mu, 0), layer(local, mu, local[mu]), layer(local, mu, local[mu] - 1),
                                    layer(local, mu, -1)};
            MPI_Sendrecv(array, 1, types[0], low, mu, array, 1, types[1], high, mu, cart, MPI_STATUS_IGNORE);
            MPI_Sendrecv(array, 1, types[2], high, mu, array, 1, types[3], low, mu, cart, MPI_STATUS_IGNORE);
            for (MPI_Datatype& type : types) MPI_Type_free(&type);
        }
        u.update_interior();
        u.update_boundary();
    }
}

void exchange_columns_with_mpi(MPI_Comm comm, plane& u, int steps) {
    int rank = 0, ranks = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    const int before = (rank + ranks - 1) % ranks, after = (rank + 1) % ranks;
    const std::size_t width = u.width(), layers = u.layers();
    MPI_Datatype columns = MPI_DATATYPE_NULL;
    MPI_Type_vector(static_cast<int>(u.rows()), static_cast<int>(layers), static_cast<int>(width), MPI_DOUBLE,
                    &columns);
    MPI_Type_commit(&columns);
    double* first = u.row(0).data();
    for (int n = 0; n < steps; ++n) {
        MPI_Sendrecv(first + layers, 1, columns, before, to_low, first + width - layers, 1, columns, after, to_low,
                     comm, MPI_STATUS_IGNORE);
        MPI_Sendrecv(first + width - 2 * layers, 1, columns, after, to_high, first, 1, columns, before, to_high, comm,
                     MPI_STATUS_IGNORE);
        u.update();
    }
    MPI_Type_free(&columns);
}

} // namespace porting
