// SPDX-License-Identifier: Apache-2.0
// Plans with ranks as processes: the body of PlanOnRanks.GhostEqualsNeighbourFace, over shared memory under
// halocline-run, over MPI under an MPI launcher, or over what HALOCLINE_TEST_TRANSPORT names.
#include "padded_oracle.hpp"

#include <cstdlib>

using namespace halocline_test;

namespace {
std::string transport() {
    if (const char* named = std::getenv("HALOCLINE_TEST_TRANSPORT")) return named;
    const bool under_mpi = std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMI_SIZE") != nullptr;
    return under_mpi ? "mpi" : "shm";
}

/// One job for the whole program: made once, because a launcher is joined once.
const comm::job& the_job() {
    static const comm::job j = [] {
        comm::job_options options;
        options.transports = {transport()};
        return comm::job::from_environment(options);
    }();
    return j;
}
} // namespace

TEST(PlanOfProcesses, UsesTheTransportOfItsLauncher) {
    const comm::job& j = the_job();
    if (j.ranks() == 1) {
        EXPECT_EQ(j.transport(), "self");
    } else {
        EXPECT_EQ(j.transport(), transport()) << j.launcher();
    }
}

TEST(PlanOfProcesses, GhostEqualsNeighbourFace) { exchange_random_cases(the_job(), 1964, 60); }

TEST(PlanOfProcesses, PaddedGhostsAreCopiesAndAllElseStays) { exchange_random_padded_cases(the_job(), 1931, 60, 4); }

TEST(PlanOfProcesses, GhostsStayRightOverManyExchanges) {
    const comm::job& j = the_job();
    const auto cut = lattice::decomposition::even({2, 2, 3, 2 * j.ranks() + 1}, {1, 1, 1, j.ranks()});
    const auto order = lattice::site_order::lexicographic(cut.local_box(j.rank()).extents);
    halo::plan p(j, cut, {.bytes_per_site = 16, .self_exchange = true, .order = order});
    lattice::field<double> x(order, 2);

    for (std::uint64_t epoch = 1; epoch <= 1000; ++epoch) {
        fill_with_oracle(x, cut, j.rank(), epoch);
        p.start(x);
        ASSERT_EQ(p.finish(), comm::status::ok);
        ASSERT_EQ(wrong_ghosts<double>(p, cut, 2, epoch), 0) << "rank " << j.rank() << " epoch " << epoch;
    }
}
