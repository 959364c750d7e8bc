/* SPDX-License-Identifier: Apache-2.0 */
/* A shared library that has Halocline in it, as an extension of an interpreter does: a job and a sum over its ranks. */
#include <halocline.h>

#include <stdio.h>

int sum_of_ones(void) {
    halocline_job* job = NULL;
    halocline_sum* sum = NULL;
    double ones = 1;
    int right = 0;
    if (halocline_job_from_environment(NULL, &job) != HALOCLINE_OK ||
        halocline_sum_create(job, 1, &sum) != HALOCLINE_OK || halocline_sum_over_ranks(sum, &ones, 1) != HALOCLINE_OK) {
        fprintf(stderr, "%s\n", halocline_error());
        return 0;
    }
    right = ones == halocline_job_ranks(job);
    halocline_sum_free(sum);
    halocline_job_free(job);
    return right;
}
