/* SPDX-License-Identifier: Apache-2.0 */
/* Halocline for C: jobs, windows between two ranks, halo plans, shells of ghosts in arrays of yours, global sums, the
 * multigrid solver. One header, C11. Each part names the C++ header with the details; docs/ describes the whole.
 * Examples: apps/halo_c/halo_c.c, c/README.md.
 *
 * A function that can fail returns a halocline_status; halocline_error() then has the text, for the calling thread. No
 * exception leaves a function. Handles may be freed in any order; freeing NULL does nothing. "Collective" functions are
 * called by all ranks, in the same order; "local" ones send nothing. A NULL handle is an input error in a function that
 * returns a status, and not allowed elsewhere. */
#ifndef HALOCLINE_H
#define HALOCLINE_H

#include <halocline/base/version.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum halocline_status {
    HALOCLINE_OK = 0,
    HALOCLINE_PEER_DIED = 1,   /* a rank of the job is dead: halocline_error_rank() */
    HALOCLINE_TIMED_OUT = 2,   /* a wait passed its deadline although nobody died */
    HALOCLINE_ABORTED = 3,     /* another rank gave up and said why */
    HALOCLINE_WRONG_DATA = 4,  /* ranks sent what was not agreed */
    HALOCLINE_MISUSED = 5,     /* calls in the wrong order */
    HALOCLINE_INPUT_ERROR = 6, /* an argument that can't be used: the text says what would be right */
    HALOCLINE_JOB_ERROR = 7,   /* the job can't continue */
    HALOCLINE_NO_MEMORY = 8,   /* a rank is out of memory; in a collective function every rank gets this */
    HALOCLINE_OTHER_ERROR = 9,
    HALOCLINE_SLAB_FULL = 10 /* no room in a rank's slab, or no memory for it: the text says what helps */
} halocline_status;

/* HALOCLINE_VERSION of the library; base/version.h has that of this header. */
const char* halocline_version(void);
/* The text for the last call that failed in this thread; valid until the next one fails. Never NULL. */
const char* halocline_error(void);
/* The rank that this failure is due to, e.g. the one that died; -1 if none is known. */
int halocline_error_rank(void);

/* --- Jobs: comm/job.hpp ----------------------------------------------------------------------------------------- */

typedef struct halocline_job halocline_job;

/* Members that are 0 mean the default. Equal on all ranks. The keys of [comm] and [faults] in the config file that
 * $HALOCLINE_CONFIG names override them, and variables HALOCLINE_COMM_... and HALOCLINE_FAULTS_... override the file:
 * whoever runs the program has the last word, and options that are not listed here (RDMA device and port, network,
 * path, checksums) are set there. configs/demo.toml lists all keys. */
typedef struct halocline_job_options {
    const char* transports;   /* in order of preference: "shm,ofi,mpi"; NULL: "shm,verbs,mpi,ofi", as built */
    const char* ofi_provider; /* libfabric's provider for transport ofi; NULL: the first that fits */
    int64_t deadline_ms;      /* longest wait for a peer that is alive; 0: a minute; at most 11 days */
    size_t slab_bytes;        /* address space of each rank's shared memory; 0: 64 GiB, used as needed */
    const char* mpi_mode;     /* of transport mpi: "two-sided" or "one-sided"; NULL: two-sided */
    int fixed;                /* not 0: neither a file nor the environment overrides these */
} halocline_job_options;

/* Prints "program: what" on stderr, only on rank 0, whether or not there is a job yet: for errors that all ranks share,
 * in a command line or from HALOCLINE_INPUT_ERROR. Another rank prints it, with its number, if it is that rank's last
 * error and could not be shared; else it waits for half a second under launchers that end a job at the first rank that
 * fails, so that rank 0 can print first. `what` may be NULL: halocline_error(). Local. */
void halocline_say_bad_input(const char* program, const char* what);
/* The ranks that halocline-run or an MPI launcher started; without a launcher a job of one rank. Collective. options
 * may be NULL. */
halocline_status halocline_job_from_environment(const halocline_job_options* options, halocline_job** job);
/* Inside an MPI program: the ranks of a communicator, given by the address and size of its MPI_Comm, which the job
 * duplicates. Collective over the communicator. Must be freed, with everything made from it, before MPI_Finalize. */
halocline_status halocline_job_from_mpi(const void* communicator, size_t bytes, const halocline_job_options* options,
                                        halocline_job** job);
/* The job goes on until everything made from it is freed, too. A program that ends with 0 before that leaves in good
 * order as well; one that ends with another code counts as dead, and ends the job. Under Open MPI's mpirun with transport
 * mpi, free everything: mpirun takes a program that does not end MPI for one that has failed. */
void halocline_job_free(halocline_job* job);

int halocline_job_rank(const halocline_job* job);
int halocline_job_ranks(const halocline_job* job);
/* The transports that serve the other ranks: "self", "shm", "shm+ofi", ...; valid as long as the handle. */
const char* halocline_job_transport(const halocline_job* job);
halocline_status halocline_job_barrier(halocline_job* job);
/* Advances what peers wait for while this rank waits for something outside of halocline: call it in loops around
 * MPI_Test, for example. Every wait and test of halocline does so, too. Never waits. */
void halocline_job_progress(halocline_job* job);
/* Reports to every rank that this one gives up, and why: the next waits of all end with HALOCLINE_ABORTED. */
void halocline_job_abort(halocline_job* job, const char* why);

/* Memory that the ranks of a node share, aligned to 128 bytes: receive windows there take one copy instead of two.
 * HALOCLINE_SLAB_FULL: less is left of slab_bytes. */
halocline_status halocline_allocate(halocline_job* job, size_t bytes, void** memory);
void halocline_deallocate(halocline_job* job, void* memory, size_t bytes);

/* --- Windows: comm/connection.hpp, comm/window.hpp -------------------------------------------------------------- */

typedef struct halocline_connection halocline_connection;
typedef struct halocline_window halocline_window;

typedef enum halocline_type {
    HALOCLINE_BYTE = 0,
    HALOCLINE_INT32 = 1,
    HALOCLINE_INT64 = 2,
    HALOCLINE_FLOAT = 3,
    HALOCLINE_DOUBLE = 4
} halocline_type;

/* Local. This end's send_tag equals the other end's receive_tag. The name appears in error messages; it may be NULL. */
halocline_status halocline_connection_create(halocline_job* job, int peer, int send_tag, int receive_tag,
                                             const char* name, halocline_connection** connection);
/* Joins the windows made so far with the peer's, in their order. Make all windows of all connections first; then ranks
 * may connect in any order. */
halocline_status halocline_connection_connect(halocline_connection* connection);
void halocline_connection_free(halocline_connection* connection);

/* Local. The buffer holds `count` elements and must outlive the window; NULL: the window has its own buffer, see
 * halocline_window_buffer(). */
halocline_status halocline_send_window_create(halocline_connection* connection, halocline_type type, size_t count,
                                              const void* buffer, halocline_window** window);
halocline_status halocline_recv_window_create(halocline_connection* connection, halocline_type type, size_t count,
                                              void* buffer, halocline_window** window);
void halocline_window_free(halocline_window* window);

/* A step is init, post, wait. init begins it: from now on a receiver's buffer may be written. It waits only for a send
 * window with its own buffer, until that may be filled. */
halocline_status halocline_window_init(halocline_window* window);
/* Sends the first `count` elements; for a receive window `count` is its size, or 0, else HALOCLINE_MISUSED. Never
 * waits. */
halocline_status halocline_window_post(halocline_window* window, size_t count);
/* 1 if wait would return at once. */
int halocline_window_test(halocline_window* window);
halocline_status halocline_window_wait(halocline_window* window);
/* The number of elements that a receive window received; valid after wait. */
size_t halocline_window_count(const halocline_window* window);
/* The window's own buffer, to be filled between init and post, or read between wait and init. It differs from step to
 * step. NULL if the window has a buffer of the caller's. */
void* halocline_window_buffer(const halocline_window* window);

/* --- Halo plans: halo/plan.hpp ---------------------------------------------------------------------------------- */

typedef struct halocline_plan halocline_plan;

/* Dimensions are x, y, z, t; in a lattice with fewer, the others have extent 1. Ranks are numbered over the rank grid,
 * x fastest, unless order_by_nodes or rank_order is set; halocline_plan_box() returns each rank's part. */
typedef struct halocline_plan_options {
    int global[4];      /* extents of the lattice */
    int rank_grid[4];   /* ranks per dimension; if they don't divide evenly, the first ranks get one site more */
    int width_low[4];   /* ghost layers behind the low face of a rank's box, per dimension; there is no default */
    int width_high[4];  /* behind the high face; at least one of all eight widths is more than 0 */
    int open[4];        /* not 0: no exchange across the edge of the lattice in this dimension */
    int order_by_nodes; /* not 0: ranks get the places of the rank grid that send few bytes between nodes */
    int self_exchange;  /* not 0: dimensions that are not cut are exchanged too, with the rank itself */
    size_t bytes_per_site;
    const char* name;      /* in error messages; may be NULL */
    halocline_type type;   /* of what a site consists; compared between ranks; HALOCLINE_BYTE, which is 0: not told */
    int parity;            /* 1: only sites whose global coordinates have an even sum are exchanged, 2: odd; 0: all */
    int fields;            /* of one message, such as several right-hand sides; 0: one */
    const int* rank_order; /* rank_order[i] has the i-th place of the rank grid, x fastest, as many as there are ranks;
                              equal on all ranks. MPI_Cart_rank() counts t fastest, if t is its last dimension. NULL:
                              lexicographic, or by nodes */
} halocline_plan_options;

/* The message through one face, as seen from this rank. */
typedef struct halocline_face {
    int dimension; /* 0 to 3 */
    int high;      /* 0: the low face, 1: the high face */
    int peer;      /* the rank behind it */
    int64_t send_sites;
    int64_t ghost_sites; /* sites that arrive, in lexicographic order of the sender's coordinates, x fastest */
} halocline_face;

/* Writes the sites sites[0], ..., sites[count - 1], bytes_per_site each, to target. Sites are numbered
 * lexicographically in the rank's box, x fastest. `face` is as in halocline_plan_face(). May be called several times
 * per message. */
typedef void (*halocline_pack)(void* context, int face, const int32_t* sites, int64_t count, void* target);

/* Collective. */
halocline_status halocline_plan_create(halocline_job* job, const halocline_plan_options* options,
                                       halocline_plan** plan);
void halocline_plan_free(halocline_plan* plan);
/* The rank's box: sites first[mu] <= x[mu] < first[mu] + extent[mu] of the lattice. */
void halocline_plan_box(const halocline_plan* plan, int first[4], int extent[4]);
/* Number of faces that are exchanged. */
int halocline_plan_faces(const halocline_plan* plan);
/* 0 <= face < halocline_plan_faces(plan). */
halocline_status halocline_plan_face(const halocline_plan* plan, int face, halocline_face* what);

/* Starts an exchange; after a failure it does nothing, and finish returns the status. The field has bytes_per_site for
 * each site of the box, x fastest, and must not be written until finish. If it is NULL, finish returns
 * HALOCLINE_MISUSED. */
void halocline_plan_start(halocline_plan* plan, const void* field);
/* halocline_plan_start() of all fields of a plan of several: `count` is that of its options. */
void halocline_plan_start_fields(halocline_plan* plan, const void* const fields[], int count);
/* Starts an exchange whose messages are filled by `pack`, called with `context` and only within this call. Of plans with
 * one field. */
void halocline_plan_start_packed(halocline_plan* plan, halocline_pack pack, void* context);
/* Where the next message through a face is to be written before halocline_plan_start_filled(): the sites of the face,
 * x fastest, bytes_per_site each; with several fields, those of one field after those of another. Each exchange has
 * another target. Over shared memory it is the neighbour's ghosts. NULL if there is no such face, or once an exchange has
 * failed. */
void* halocline_plan_target(halocline_plan* plan, int face);
/* Starts an exchange whose messages are in their targets. */
void halocline_plan_start_filled(halocline_plan* plan);
/* 1 if finish would return at once. */
int halocline_plan_test(halocline_plan* plan);
/* Waits until all ghosts are here. */
halocline_status halocline_plan_finish(halocline_plan* plan);
/* Stores the numbers of the faces whose ghosts have arrived since the last call, each once per exchange, and returns how
 * many; they may be read at once, while others travel. Call it in a loop around test, and once more after finish. */
int halocline_plan_completed(halocline_plan* plan, int faces[8]);
/* A table for people: each face's peer, transport, path and sites, and why. Like snprintf, writes at most `size` bytes,
 * the 0 included, and returns the length of the whole; 0 if it fails. */
size_t halocline_plan_describe(const halocline_plan* plan, char* text, size_t size);
/* The ghosts behind a face: ghost_sites * bytes_per_site bytes; valid from finish to the next start. NULL if there is
 * no such face. With several fields, those of the next field follow. */
const void* halocline_plan_ghost(const halocline_plan* plan, int face);

/* --- Shells: ghosts in the caller's own arrays: halo/shell_plan.hpp -------------------------------------------- */

typedef struct halocline_shell halocline_shell;

typedef enum halocline_boundary {
    HALOCLINE_BOUNDARY_DEFAULT = 0, /* of shells: periodic; of the solver: antiperiodic in t, else periodic */
    HALOCLINE_PERIODIC = 1,
    HALOCLINE_ANTIPERIODIC = 2,
    HALOCLINE_OPEN = 3
} halocline_boundary;

typedef enum halocline_layout {
    HALOCLINE_PADDED = 0,  /* an array has the sites of the rank's box, grown by the widths: [t][z][y][x] in C */
    HALOCLINE_APPENDED = 1 /* the sites of the box, x fastest, then the ghosts: halocline_shell_site() */
} halocline_layout;

/* Members that are 0 mean the default. Equal on all ranks. */
typedef struct halocline_shell_options {
    int global[4];       /* as in halocline_plan_options */
    int rank_grid[4];    /* as in halocline_plan_options */
    int width_low[4];    /* ghost layers below the rank's box, per dimension, also where it is not cut */
    int width_high[4];   /* above it */
    int boundary[4];     /* halocline_boundary. Beyond an antiperiodic edge ghosts change their sign (of floating-point
                           types); beyond an open one nothing arrives: a padded array has these sites, for values of
                           the caller's, an appended one does not */
    int order_by_nodes;  /* as in halocline_plan_options */
    int layout;          /* halocline_layout */
    int corners;         /* not 0: ghosts of edges and corners too, else only those behind faces */
    int reverse;         /* not 0: halocline_shell_start_reverse() will be called; of floating-point types */
    int parity;          /* as in halocline_plan_options */
    int components;      /* elements of a site, next to each other; 0: one. A complex number is two */
    int fields;          /* arrays that travel in one message; 0: one */
    halocline_type type; /* of the elements; there is no default, and HALOCLINE_BYTE is refused */
    const char* name;    /* in error messages; may be NULL */
    const int* rank_order; /* as in halocline_plan_options */
} halocline_shell_options;

/* What this rank has with these options, before there are arrays: the sites first[mu] <= x[mu] < first[mu] + extent[mu]
 * of the lattice; *sites: how many an array has, ghosts included. Local. */
halocline_status halocline_shell_box(halocline_job* job, const halocline_shell_options* options, int first[4],
                                     int extent[4], int64_t* sites);
/* The plan of the exchanges of `count` arrays that take turns, each of *sites * components elements. With several fields
 * it is of count * fields arrays: arrays[i * fields + f] is field f of exchange i. They must outlive the plan, and stay
 * where they are. In memory of halocline_allocate() the neighbours write the ghosts in place; else they are copied twice.
 * Collective. */
halocline_status halocline_shell_create(halocline_job* job, const halocline_shell_options* options, int count,
                                        void* const arrays[], halocline_shell** shell);
void halocline_shell_free(halocline_shell* shell);
/* Where the elements of a site begin in an array, in sites: array[components * site]. x: coordinates on the lattice, those
 * of ghosts not wrapped around. -1: an array has no such site. For set-up: loops keep what it returns. Local. */
int64_t halocline_shell_site(const halocline_shell* shell, const int x[4]);
/* Starts the exchange of arrays[which], or of the fields of exchange `which`; after a failure it does nothing. Until
 * finish the sites that the rank owns are not written and the ghosts not read. */
void halocline_shell_start(halocline_shell* shell, int which);
/* Starts the adjoint: what is in the ghosts is added, in a fixed order, to the sites that they are copies of; the ghosts
 * keep their values. Of plans with options.reverse. */
void halocline_shell_start_reverse(halocline_shell* shell, int which);
/* 1 if finish would return at once. */
int halocline_shell_test(halocline_shell* shell);
/* Waits until all ghosts, or all sums, are in place. HALOCLINE_MISUSED: also where start was called with a `which` that
 * does not exist. */
halocline_status halocline_shell_finish(halocline_shell* shell);
/* HALOCLINE_OTHER_ERROR if the ghosts of exchange `which` are not those of its arrays as they are now; only with
 * HALOCLINE_CHECK=normal in the environment, otherwise it does nothing. To be called before ghosts are used. Local. */
halocline_status halocline_shell_require_fresh(const halocline_shell* shell, int which);
/* As halocline_plan_describe(). */
size_t halocline_shell_describe(const halocline_shell* shell, char* text, size_t size);

/* --- Global sums: comm/global_sum.hpp --------------------------------------------------------------------------- */

typedef struct halocline_sum halocline_sum;

/* Collective; sums of up to max_values <= 1024 doubles. */
halocline_status halocline_sum_create(halocline_job* job, int max_values, halocline_sum** sum);
void halocline_sum_free(halocline_sum* sum);
/* values <- sum, or maximum, over all ranks, with the same bits on each. HALOCLINE_WRONG_DATA: ranks make different
 * calls, or pass different counts; also if one passes NULL or more than max_values, which is HALOCLINE_INPUT_ERROR
 * there. */
halocline_status halocline_sum_over_ranks(halocline_sum* sum, double* values, size_t count);
halocline_status halocline_maximum_over_ranks(halocline_sum* sum, double* values, size_t count);
/* halocline_sum_over_ranks() in two halves. start copies the values; only one sum at a time; finish takes the same
 * number of values as start, otherwise it returns HALOCLINE_MISUSED; given NULL, it can be called again. */
void halocline_sum_start(halocline_sum* sum, const double* values, size_t count);
/* 1 if finish would return at once. */
int halocline_sum_test(halocline_sum* sum);
halocline_status halocline_sum_finish(halocline_sum* sum, double* values, size_t count);

/* --- The multigrid solver: amg/solver.hpp, dirac/wilson_parameters.hpp ------------------------------------------- */

typedef struct halocline_solver halocline_solver;

typedef enum halocline_spin_basis {
    HALOCLINE_OPENQCD_SPINS = 0,      /* that of openQCD and DDalphaAMG, in which the operator acts */
    HALOCLINE_DEGRAND_ROSSI_SPINS = 1 /* that of USQCD's propagators: Chroma, MILC, QUDA */
} halocline_spin_basis;

/* Called on every rank while the solver is made and solves, with one line of text, which is valid during the call. A
 * milestone is worth a line in a log; other lines follow each other quickly. It must not call functions of this header
 * with the job or the solver, nor leave by an exception or longjmp. */
typedef void (*halocline_progress)(void* context, const char* line, int milestone);

/* D x = b for the Wilson-clover operator
 *   D = (4 + m0) - 1/2 sum_mu [(1 - gamma_mu) U_mu(x) psi(x+mu) + (1 + gamma_mu) U_mu(x-mu)^+ psi(x-mu)]
 *       + csw * clover.
 * Dimensions are x, y, z, t. Members that are 0 mean the default, but global has none, and m0 and csw are taken as they
 * are. Equal on all ranks, except for progress and context. */
typedef struct halocline_solver_options {
    int global[4];               /* extents of the lattice */
    int rank_grid[4];            /* ranks per dimension; all 0: chosen. Ranks own whole blocks */
    int order_by_nodes;          /* not 0: as in halocline_plan_options */
    double m0;                   /* bare mass: m0 = 1 / (2 kappa) - 4 */
    double csw;                  /* 0: plain Wilson */
    int boundary[4];             /* halocline_boundary, of the fermions; links that are passed contain no sign */
    int spins;                   /* halocline_spin_basis, of b and x */
    int blocks[4];               /* Schwarz blocks, which are the coarse lattice's sites; all 0: chosen */
    int vectors;                 /* test vectors; 0: 28 */
    int setup_iterations;        /* of the bootstrap set-up; 0: 4; -1: none */
    double tolerance;            /* for |b - D x| / |b|; 0: 1e-10 */
    int max_iterations;          /* outer iterations; 0: 1000 */
    int at_once;                 /* right-hand sides that are iterated together, 1 to 16; 0: 8. Changes no bits */
    uint64_t seed;               /* of the test vectors; 0: 1 */
    halocline_progress progress; /* may be NULL */
    void* context;               /* of progress */
    const int* rank_order;       /* as in halocline_plan_options */
    int from_x;                  /* not 0: solves start from what x holds, such as an unfinished solution; 0: from 0 */
} halocline_solver_options;

typedef struct halocline_solve_report {
    int converged;            /* 1 if relative_residual meets the tolerance */
    int iterations;           /* outer ones */
    double relative_residual; /* |b - D x| / |b|, computed with the x that is returned, by the solver's operator */
    double coarse_iterations; /* for each outer one, average of all that were iterated together */
    double setup_seconds;     /* of the slowest rank */
    double solve_seconds;     /* of the slowest rank, for all that were iterated together */
    int at_once;              /* how many these were */
    const char* status;       /* "converged", "max_iterations", ...; never freed */
} halocline_solve_report;

/* The part of the lattice that this rank has with these options, before the solver is made: sites
 * first[mu] <= x[mu] < first[mu] + extent[mu]. Local. */
halocline_status halocline_solver_box(halocline_job* job, const halocline_solver_options* options, int first[4],
                                      int extent[4]);
/* Makes the solver and its hierarchy, which takes as long as several solves. links: [site][mu][row][column][re, im],
 * the sites of this rank's box, x fastest, mu = x, y, z, t; U_mu(x) acts on the column of colours at x + mu. They are
 * copied, and may miss SU(3) by 1e-5 at most; those that leave an open boundary may be zero. HALOCLINE_INPUT_ERROR also
 * where no hierarchy can be made for these links and parameters. Collective. */
halocline_status halocline_solver_create(halocline_job* job, const halocline_solver_options* options,
                                         const double* links, halocline_solver** solver);
void halocline_solver_free(halocline_solver* solver);
/* Solves D x = b from x = 0, or options.from_x. x and b: [site][spin][colour][re, im], as the links' sites; they may
 * be the same array.
 * Not converging is no failure: look at the report, which may be NULL. Collective. */
halocline_status halocline_solver_solve(halocline_solver* solver, double* x, const double* b,
                                        halocline_solve_report* report);
/* The same for several right-hand sides, up to options.at_once of them iterated together: they share global sums, the
 * coarse level's messages, and the reading of its matrices. Each solution has the bits that it has alone. x and b are
 * `count` arrays each, equally many on all ranks; x[k] may be b[k], all others are distinct. reports: `count` of them,
 * or NULL. Memory: 20 KB per site for each beyond the first that is iterated with others, kept for later calls. If it
 * fails, some x may have been written. Collective. */
halocline_status halocline_solver_solve_several(halocline_solver* solver, int count, double* const* x,
                                                const double* const* b, halocline_solve_report* reports);
/* y = D x by the plain operator, several times slower than the solver's: to compare conventions, and to check a
 * solution. Collective. */
halocline_status halocline_solver_apply(halocline_solver* solver, double* y, const double* x);

#ifdef __cplusplus
}
#endif

#endif
