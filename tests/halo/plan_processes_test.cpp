// SPDX-License-Identifier: Apache-2.0
// Plans with ranks as processes: the body of PlanOnRanks.GhostEqualsNeighbourFace, over whatever transport the job has.
#include "oracle.hpp"

using namespace halocline_test;

namespace {
/// One job for the whole program: made once, because a launcher is joined once.
const comm::job& the_job() {
    static const comm::job j = comm::job::from_environment();
    return j;
}
} // namespace

TEST(PlanOfProcesses, GhostEqualsNeighbourFace) { exchange_random_cases(the_job(), 1964, 60); }

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
