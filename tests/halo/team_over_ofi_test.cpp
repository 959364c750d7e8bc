// SPDX-License-Identifier: Apache-2.0
// Teams over libfabric, for the thread sanitizer: two threads in libfabric, or in what this rank keeps about it, race.
#include "team_over_network.hpp"

using namespace halocline_test;

TEST(TeamsOverOfi, HaveTwoPlansInFlight) {
    comm::job_options options;
    options.transports = {"ofi"};
    options.deadline = std::chrono::seconds(60);
    const comm::job j = comm::job::from_environment(options);

    for (const int members : {1, 2, 3}) exchange_two_plans_at_once(j, members);
}
