/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs over an MPI program's own communicator, from C: with the ranks in reverse, with sums by MPI_Put, and as many in
 * succession as the argument says. */
#include <halocline.h>

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A mode that differs between ranks is refused, and the error names both. */
static int mode_is_agreed_on(MPI_Comm comm, int rank) {
    const halocline_job_options own = {.mpi_mode = rank == 0 ? "one-sided" : "two-sided"};
    halocline_job* job = NULL;
    const int refused = halocline_job_from_mpi(&comm, sizeof comm, &own, &job) != HALOCLINE_OK && job == NULL &&
                        strstr(halocline_error(), "one-sided") != NULL &&
                        strstr(halocline_error(), "two-sided") != NULL;
    if (!refused) fprintf(stderr, "rank %d: modes of MPI that differ: %s\n", rank, halocline_error());
    return refused;
}

/* A rank with a bad option is no reason for the others to wait. */
static int bad_mode_is_shared(MPI_Comm comm, int rank) {
    const halocline_job_options own = {.mpi_mode = rank == 0 ? "sideways" : NULL};
    halocline_job* job = NULL;
    const int refused = halocline_job_from_mpi(&comm, sizeof comm, &own, &job) == HALOCLINE_INPUT_ERROR &&
                        job == NULL && strstr(halocline_error(), "unknown mode of MPI 'sideways'") != NULL;
    if (!refused) fprintf(stderr, "rank %d: a bad mode of MPI: %s\n", rank, halocline_error());
    return refused;
}

static int check(halocline_status s) {
    if (s != HALOCLINE_OK) fprintf(stderr, "%s\n", halocline_error());
    return s == HALOCLINE_OK;
}

/* Jobs give their communicators back: one made after many jobs gets a handle close to the one made before them. MPICH
 * has 2048. */
static int communicators_come_back(MPI_Comm comm, int jobs) {
    int first = 0;
    for (int n = 0; n < jobs; ++n) {
        const halocline_job_options over_mpi = {.transports = "mpi"};
        halocline_job* job = NULL;
        halocline_sum* sum = NULL;
        double one = 1.0;
        const int good = check(halocline_job_from_mpi(&comm, sizeof comm, &over_mpi, &job)) &&
                         check(halocline_sum_create(job, 1, &sum)) && check(halocline_sum_over_ranks(sum, &one, 1));
        halocline_sum_free(sum);
        halocline_job_free(job);
        if (!good) return 0;

        MPI_Comm probe;
        MPI_Comm_dup(comm, &probe);
        const int place = MPI_Comm_c2f(probe);
        MPI_Comm_free(&probe);
        if (n == 0) first = place;
        if (abs(place - first) < 8) continue;
        fprintf(stderr, "after job %d a communicator has place %d, after the first it had %d\n", n, place, first);
        return 0;
    }
    return 1;
}

/* Rank 0 posts before rank 1 has begun the step, and then waits for an answer by MPI, which comes behind the message. */
static int progress_moves_a_window(MPI_Comm comm, halocline_job* job) {
    enum { first_tag = 1, answer_tag, count = 100000 };
    const int rank = halocline_job_rank(job);
    if (rank > 1) return 1;
    halocline_connection* connection = NULL;
    halocline_window* window = NULL;
    double* values = calloc(count, sizeof *values);
    int good = values != NULL && check(halocline_connection_create(job, 1 - rank, 0, 0, "window", &connection));
    if (good && rank == 0) {
        values[count - 1] = 7;
        good = check(halocline_send_window_create(connection, HALOCLINE_DOUBLE, count, values, &window));
    } else if (good) {
        good = check(halocline_recv_window_create(connection, HALOCLINE_DOUBLE, count, values, &window));
    }
    good = good && check(halocline_connection_connect(connection));
    if (good && rank == 0) {
        MPI_Request request;
        int answer = 0, here = 0;
        good = check(halocline_window_init(window)) && check(halocline_window_post(window, count));
        MPI_Send(&answer, 1, MPI_INT, 1, first_tag, comm);
        MPI_Irecv(&answer, 1, MPI_INT, 1, answer_tag, comm, &request);
        while (!here) {
            halocline_job_progress(job);
            MPI_Test(&request, &here, MPI_STATUS_IGNORE);
        }
        good = good && check(halocline_window_wait(window));
    } else if (good) {
        int answer = 1;
        MPI_Recv(&answer, 1, MPI_INT, 0, first_tag, comm, MPI_STATUS_IGNORE);
        good = check(halocline_window_init(window)) && check(halocline_window_post(window, 0)) &&
               check(halocline_window_wait(window)) && values[count - 1] == 7;
        MPI_Send(&answer, 1, MPI_INT, 0, answer_tag, comm);
    }
    halocline_window_free(window);
    halocline_connection_free(connection);
    free(values);
    return good;
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

    const halocline_job_options one_sided = {.transports = "mpi", .mpi_mode = "one-sided"};
    if (mode_is_agreed_on(comm, rank) && bad_mode_is_shared(comm, rank) &&
        check(halocline_job_from_mpi(&comm, sizeof comm, &one_sided, &job)) &&
        check(halocline_sum_create(job, 2, &sum))) {
        double values[2] = {1.0, rank};
        good = halocline_job_rank(job) == ranks - 1 - rank && halocline_job_ranks(job) == ranks &&
               check(halocline_sum_over_ranks(sum, values, 2)) && values[0] == ranks &&
               values[1] == ranks * (ranks - 1) / 2.0;
    }
    halocline_sum_free(sum);
    halocline_job_free(job);
    const halocline_job_options over_shm = {.transports = "shm"};
    halocline_job* near = NULL;
    good = good && check(halocline_job_from_mpi(&comm, sizeof comm, &over_shm, &near)) &&
           progress_moves_a_window(comm, near);
    halocline_job_free(near);
    good = good && communicators_come_back(comm, argc > 1 ? atoi(argv[1]) : 20);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return good ? 0 : 1;
}
