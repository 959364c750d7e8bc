/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest user of the C interface: a job of one rank, a sum. */
#include <halocline.h>

#include <stdio.h>
#include <string.h>

#if HALOCLINE_VERSION_MAJOR == 0 && HALOCLINE_VERSION_MINOR < 1
#error "this program needs halocline 0.1"
#endif

int main(void) {
    halocline_job* job = NULL;
    halocline_sum* sum = NULL;
    double value = 2.5;
    if (halocline_job_from_environment(NULL, &job) != HALOCLINE_OK ||
        halocline_sum_create(job, 1, &sum) != HALOCLINE_OK ||
        halocline_sum_over_ranks(sum, &value, 1) != HALOCLINE_OK) {
        fprintf(stderr, "%s\n", halocline_error());
        return 1;
    }
    printf("halocline %s: sum over %d ranks: %g\n", halocline_version(), halocline_job_ranks(job), value);
    halocline_sum_free(sum);
    halocline_job_free(job);
    return value == 2.5 && strcmp(halocline_version(), HALOCLINE_VERSION) == 0 ? 0 : 1;
}
