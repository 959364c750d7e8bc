/* SPDX-License-Identifier: Apache-2.0 */
/* The example of c/README.md, compiled (docs.readmes compares them). */
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
