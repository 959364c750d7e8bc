/* SPDX-License-Identifier: Apache-2.0 */
/* The examples of c/README.md, compiled (docs.readmes compares them). */
#include <halocline.h>

typedef struct communicator* MPI_Comm; /* as <mpi.h> may define it */
void inside_mpi(MPI_Comm cart, void give_up(const char* why));

void inside_mpi(MPI_Comm cart, void give_up(const char* why)) {
    halocline_job* job; /* freed, with everything made from it, before MPI_Finalize */
    if (halocline_job_from_mpi(&cart, sizeof cart, NULL, &job) != HALOCLINE_OK) give_up(halocline_error());
    halocline_job_free(job);
}

void exchange(const double* field, void give_up(const char* why));

void exchange(const double* field, void give_up(const char* why)) {
    halocline_job* job;
    halocline_plan* plan;
    if (halocline_job_from_environment(NULL, &job) != HALOCLINE_OK) give_up(halocline_error());
    halocline_plan_options o = {.global = {8, 8, 8, 16},
                                .rank_grid = {1, 1, 1, 2},
                                .width_low = {0, 0, 0, 1},
                                .width_high = {0, 0, 0, 1},
                                .bytes_per_site = sizeof(double)};
    if (halocline_plan_create(job, &o, &plan) != HALOCLINE_OK) give_up(halocline_error());
    halocline_plan_start(plan, field);
    if (halocline_plan_finish(plan) != HALOCLINE_OK) give_up(halocline_error());
}

/* One step on the array `from` of a pair that takes turns. */
typedef void update(double* to, const double* from, int only_boundary);
void diffuse(halocline_job* job, int steps, update* update_sites, void give_up(const char* why));

void diffuse(halocline_job* job, int steps, update* update_sites, void give_up(const char* why)) {
    halocline_shell* ghosts;
    halocline_shell_options o = {.global = {64, 64, 64, 1}, /* x, y, z; x is the fastest in memory */
                                 .rank_grid = {1, 1, 2, 1},
                                 .width_low = {1, 1, 1, 0},
                                 .width_high = {1, 1, 1, 0},
                                 .type = HALOCLINE_DOUBLE};
    int first[4], extent[4];
    int64_t sites; /* (extent[0] + 2) * (extent[1] + 2) * (extent[2] + 2) */
    void* u[2];
    if (halocline_shell_box(job, &o, first, extent, &sites) != HALOCLINE_OK) give_up(halocline_error());
    for (int i = 0; i < 2; ++i)
        if (halocline_allocate(job, (size_t)sites * sizeof(double), &u[i]) != HALOCLINE_OK) give_up(halocline_error());
    if (halocline_shell_create(job, &o, 2, u, &ghosts) != HALOCLINE_OK) give_up(halocline_error());
    for (int n = 0; n < steps; ++n) {
        halocline_shell_start(ghosts, n % 2); /* the faces of u[n % 2] go to the neighbours */
        update_sites(u[(n + 1) % 2], u[n % 2], 0);
        if (halocline_shell_finish(ghosts) != HALOCLINE_OK) give_up(halocline_error());
        update_sites(u[(n + 1) % 2], u[n % 2], 1);
    }
}

const double* links_of_sites(const int first[4], const int extent[4]);
void solve_all(halocline_job* job, double* const* x, const double* const* b, void give_up(const char* why));

void solve_all(halocline_job* job, double* const* x, const double* const* b, void give_up(const char* why)) {
    halocline_solver* solver;
    halocline_solve_report reports[12];
    halocline_solver_options o = {
        .global = {16, 16, 16, 32}, .m0 = -0.4, .csw = 1, .spins = HALOCLINE_DEGRAND_ROSSI_SPINS};
    int first[4], extent[4];
    if (halocline_solver_box(job, &o, first, extent) != HALOCLINE_OK) give_up(halocline_error());
    const double* links = links_of_sites(first, extent);
    if (halocline_solver_create(job, &o, links, &solver) != HALOCLINE_OK) give_up(halocline_error());
    if (halocline_solver_solve_several(solver, 12, x, b, reports) != HALOCLINE_OK) give_up(halocline_error());
    for (int i = 0; i < 12; ++i)
        if (!reports[i].converged) give_up(reports[i].status);
    halocline_solver_free(solver);
}
