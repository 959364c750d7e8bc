// SPDX-License-Identifier: Apache-2.0
// The examples of comm/README.md, compiled (docs.readmes compares them).
#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/job.hpp>

void sum_norms(double local_norm2);

using namespace halocline;

void sum_norms(double local_norm2) {
    const auto job = comm::job::from_environment(); // halocline-run -n 4 -- ./program
    comm::global_sum sum(job);
    double norm2 = local_norm2;
    sum.sum_or_throw({&norm2, 1}); // or sum(), which returns a status
}
