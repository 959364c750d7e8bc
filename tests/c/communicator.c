/* SPDX-License-Identifier: Apache-2.0 */
/* A job of an MPI program's own communicator, from C: ranks the other way round. */
#include <halocline.h>

#include <mpi.h>
#include <stdio.h>

static int check(halocline_status s) {
    if (s != HALOCLINE_OK) fprintf(stderr, "%s\n", halocline_error());
    return s == HALOCLINE_OK;
}

int main(int argc, char** argv) {
    MPI_Comm comm;
    int rank = 0, ranks = 1, good = 0;
    halocline_job* job = NULL;
    halocline_sum* sum = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    MPI_Comm_size(comm, &ranks);

    if (check(halocline_job_from_mpi(&comm, sizeof comm, NULL, &job)) && check(halocline_sum_create(job, 2, &sum))) {
        double values[2] = {1.0, rank};
        good = halocline_job_rank(job) == ranks - 1 - rank && halocline_job_ranks(job) == ranks &&
               check(halocline_sum_over_ranks(sum, values, 2)) && values[0] == ranks &&
               values[1] == ranks * (ranks - 1) / 2.0;
    }
    halocline_sum_free(sum);
    halocline_job_free(job);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return good ? 0 : 1;
}
