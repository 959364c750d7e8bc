/* SPDX-License-Identifier: Apache-2.0 */
/* The examples of c/README.md, compiled (docs.readmes compares them). */
#include <halocline.h>

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
