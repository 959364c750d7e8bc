/* SPDX-License-Identifier: Apache-2.0 */
/* Halocline from C: ghosts of a 4-d lattice by a halo plan, a ring of windows, a global sum. Each is checked.
 * halocline-run -n 2 -- halo_c [transports]
 * Exit code 0: all as expected; 2: bad input; 3: the job failed; 1: something else. */
#include <halocline.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { steps = 20, ring_values = 1000 };

static void require(halocline_status s) {
    if (s == HALOCLINE_OK) return;
    if (s == HALOCLINE_INPUT_ERROR) {
        halocline_say_bad_input("halo_c", halocline_error());
    } else {
        fprintf(stderr, "halo_c: %s\n", halocline_error());
    }
    exit(s == HALOCLINE_INPUT_ERROR ? 2 : s < HALOCLINE_NO_MEMORY ? 3 : 1);
}

static const int lattice[4] = {4, 3, 2, 8};

/* What a site holds in a step: its place on the lattice. */
static double value_of(const int x[4], int step) {
    return 1000.0 * step + x[0] + lattice[0] * (x[1] + lattice[1] * (x[2] + lattice[2] * (double)x[3]));
}

/* Calls visit for each site of a box, x fastest. */
static void for_sites(const int first[4], const int extent[4], void (*visit)(void*, const int x[4]), void* context) {
    int x[4];
    for (x[3] = first[3]; x[3] < first[3] + extent[3]; ++x[3])
        for (x[2] = first[2]; x[2] < first[2] + extent[2]; ++x[2])
            for (x[1] = first[1]; x[1] < first[1] + extent[1]; ++x[1])
                for (x[0] = first[0]; x[0] < first[0] + extent[0]; ++x[0]) visit(context, x);
}

struct cursor {
    double* at;
    const double* ghost;
    int step;
    long wrong;
};

static void fill(void* context, const int x[4]) {
    struct cursor* c = context;
    *c->at++ = value_of(x, c->step);
}

static void compare(void* context, const int x[4]) {
    struct cursor* c = context;
    int wrapped[4];
    for (int mu = 0; mu < 4; ++mu) wrapped[mu] = (x[mu] + lattice[mu]) % lattice[mu];
    if (*c->ghost++ != value_of(wrapped, c->step)) ++c->wrong;
}

/* Packs by hand what plan_start would copy. */
struct packing {
    const double* field;
};

static void pack(void* context, int face, const int32_t* sites, int64_t count, void* target) {
    const struct packing* p = context;
    double* to = target;
    (void)face;
    for (int64_t i = 0; i < count; ++i) to[i] = p->field[sites[i]];
}

/* Ghosts of all faces, t cut over the ranks. Returns how many were wrong. */
static long exchange_ghosts(halocline_job* job) {
    halocline_plan_options options = {.rank_grid = {1, 1, 1, halocline_job_ranks(job)},
                                      .width_low = {1, 1, 1, 1},
                                      .width_high = {1, 1, 1, 1},
                                      .order_by_nodes = 1,
                                      .self_exchange = 1,
                                      .bytes_per_site = sizeof(double),
                                      .name = "ghosts"};
    halocline_plan* plan = NULL;
    int first[4], extent[4];
    struct cursor c = {NULL, NULL, 0, 0};
    memcpy(options.global, lattice, sizeof lattice);
    require(halocline_plan_create(job, &options, &plan));
    halocline_plan_box(plan, first, extent);

    double* field =
        malloc(sizeof(double) * (size_t)extent[0] * (size_t)extent[1] * (size_t)extent[2] * (size_t)extent[3]);
    if (field == NULL) exit(1);
    for (c.step = 0; c.step < steps; ++c.step) {
        struct packing p = {field};
        c.at = field;
        for_sites(first, extent, fill, &c);
        if (c.step % 2 == 0) {
            halocline_plan_start(plan, field);
        } else {
            halocline_plan_start_packed(plan, pack, &p);
        }
        require(halocline_plan_finish(plan));
        for (int f = 0; f < halocline_plan_faces(plan); ++f) {
            halocline_face face;
            int ghosts[4], layer[4];
            require(halocline_plan_face(plan, f, &face));
            memcpy(ghosts, first, sizeof ghosts);
            memcpy(layer, extent, sizeof layer);
            ghosts[face.dimension] =
                face.high ? first[face.dimension] + extent[face.dimension] : first[face.dimension] - 1;
            layer[face.dimension] = 1;
            c.ghost = halocline_plan_ghost(plan, f);
            for_sites(ghosts, layer, compare, &c);
        }
    }
    free(field);
    halocline_plan_free(plan);
    return c.wrong;
}

/* Each rank writes to the next, straight into its buffer; the answer comes back through the window's own buffer. */
static long pass_round_ring(halocline_job* job) {
    const int rank = halocline_job_rank(job), ranks = halocline_job_ranks(job);
    const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    halocline_connection *up = NULL, *down = NULL;
    halocline_window *to_next = NULL, *from_before = NULL, *to_before = NULL, *from_next = NULL;
    void* memory = NULL;
    double out[ring_values];
    long wrong = 0;
    require(halocline_allocate(job, ring_values * sizeof(double), &memory));
    const double* in = memory;
    require(halocline_connection_create(job, next, 0, 1, "next", &up));
    require(halocline_connection_create(job, before, 1, 0, "before", &down));
    require(halocline_send_window_create(up, HALOCLINE_DOUBLE, ring_values, out, &to_next));
    require(halocline_recv_window_create(up, HALOCLINE_INT32, ring_values, NULL, &from_next));
    require(halocline_recv_window_create(down, HALOCLINE_DOUBLE, ring_values, memory, &from_before));
    require(halocline_send_window_create(down, HALOCLINE_INT32, ring_values, NULL, &to_before));
    require(halocline_connection_connect(up));
    require(halocline_connection_connect(down));
    for (int step = 0; step < steps; ++step) {
        const size_t part = (size_t)(step * 37 + rank) % ring_values; /* not always the whole window */
        require(halocline_window_init(from_before));
        require(halocline_window_init(from_next));
        require(halocline_window_init(to_next));
        require(halocline_window_init(to_before));
        int32_t* packed = halocline_window_buffer(to_before);
        for (int i = 0; i < ring_values; ++i) {
            out[i] = 1e6 * rank + 1e3 * step + i;
            packed[i] = rank * step - i;
        }
        require(halocline_window_post(to_next, part));
        require(halocline_window_post(to_before, ring_values));
        require(halocline_window_post(from_before, 0));
        require(halocline_window_post(from_next, 0));
        require(halocline_window_wait(from_before));
        require(halocline_window_wait(from_next));
        const int32_t* unpacked = halocline_window_buffer(from_next);
        wrong += halocline_window_count(from_before) != (size_t)(step * 37 + before) % ring_values;
        wrong += halocline_window_count(from_next) != ring_values;
        for (size_t i = 0; i < halocline_window_count(from_before); ++i) {
            wrong += in[i] != 1e6 * before + 1e3 * step + (double)i;
        }
        for (int i = 0; i < ring_values; ++i) wrong += unpacked[i] != next * step - i;
        require(halocline_window_wait(to_next));
        require(halocline_window_wait(to_before));
    }
    require(halocline_job_barrier(job)); /* so that nobody frees what a peer still reads */
    halocline_window_free(to_next);
    halocline_window_free(from_before);
    halocline_window_free(to_before);
    halocline_window_free(from_next);
    halocline_connection_free(up);
    halocline_connection_free(down);
    halocline_deallocate(job, memory, ring_values * sizeof(double));
    return wrong;
}

/* 1: what was printed can't be written; 0. */
static int printing_failed(void) {
    if (fflush(stdout) == 0 || errno == EPIPE) return 0; /* EPIPE: the reader has left, which is no error */
    fprintf(stderr, "halo_c: standard output can't be written: %s\n", strerror(errno));
    return 1;
}

int main(int argc, char** argv) {
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file may grow to its limit (ulimit -f) */
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        puts("usage: halo_c [transports]     shm, verbs, ofi, mpi, with ',' between\n"
             "Exchanges ghosts, passes words round a ring of all ranks, and compares each with what is right.");
        return printing_failed();
    }
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("halo_c %s\n", halocline_version());
        return printing_failed();
    }
    if (argc > 2) {
        halocline_say_bad_input("halo_c", "more than one argument: expected transports with ',' between");
        return 2;
    }
    /* The command line takes precedence over a config file. */
    halocline_job_options options = {.transports = argc > 1 ? argv[1] : NULL, .deadline_ms = 30000, .fixed = argc > 1};
    halocline_job* job = NULL;
    halocline_sum* sum = NULL;
    require(halocline_job_from_environment(&options, &job));
    require(halocline_sum_create(job, 8, &sum));

    int printed = 1;
    double wrong[2];
    wrong[0] = (double)exchange_ghosts(job);
    wrong[1] = (double)pass_round_ring(job);
    halocline_sum_start(sum, wrong, 2);
    while (!halocline_sum_test(sum)) { /* a real program would do other work here */
    }
    require(halocline_sum_finish(sum, wrong, 2));
    double last = halocline_job_rank(job);
    require(halocline_maximum_over_ranks(sum, &last, 1));
    if (halocline_job_rank(job) == 0) {
        printf("halocline %s, %d ranks over %s: %g wrong ghosts, %g wrong words in the ring, last rank %g\n",
               halocline_version(), halocline_job_ranks(job), halocline_job_transport(job), wrong[0], wrong[1], last);
        printed = !printing_failed();
    }
    const int good = printed && wrong[0] == 0 && wrong[1] == 0 && last == halocline_job_ranks(job) - 1;
    halocline_sum_free(sum);
    halocline_job_free(job);
    return good ? 0 : 1;
}
