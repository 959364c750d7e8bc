// SPDX-License-Identifier: Apache-2.0
// Plans driven by a team of threads.
#include "oracle.hpp"
#include "small_job.hpp"

#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

using namespace halocline_test;
using comm::status;
using halo::plan;
using lattice::decomposition;

namespace {

class PlanOfTeam : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Members, PlanOfTeam, testing::Values(1, 2, 3, 4));

TEST_P(PlanOfTeam, SharesThePackingAndSeesTheSameGhosts) {
    const int members = GetParam();
    const auto cut = decomposition::even({3, 4, 2, 6}, {1, 1, 1, 2});

    run(2, [&](const comm::job& j) {
        const auto order = lattice::site_order::lexicographic(cut.local_box(j.rank()).extents);
        plan p(j, cut, {.bytes_per_site = 24, .order = order});
        lattice::field<double> x(order, 3);
        std::barrier meet(members);
        std::atomic<int> wrong{0}, bad{0};
        const auto member = [&](int index) {
            for (std::uint64_t epoch = 1; epoch <= 100; ++epoch) {
                if (index == 0) fill_with_oracle(x, cut, j.rank(), epoch);
                meet.arrive_and_wait(); // the source is complete
                p.start(x, {index, members});
                bad += p.finish({index, members}) != status::ok;
                wrong += wrong_ghosts<double>(p, cut, 3, epoch) != 0;
            }
        };
        std::vector<std::thread> team;
        for (int i = 1; i < members; ++i) team.emplace_back(member, i);
        member(0);
        for (std::thread& t : team) t.join();

        EXPECT_EQ(bad, 0);
        EXPECT_EQ(wrong, 0);
        EXPECT_EQ(p.epoch(), 100U);
    });
}

TEST(Plan, TeamsOfChangingSizeTakeTurns) {
    const auto cut = decomposition::even({2, 2, 2, 4}, {1, 1, 1, 2});

    run(2, [&](const comm::job& j) {
        plan p(j, cut, {.bytes_per_site = 8});
        lattice::field<double> x(lattice::site_order::lexicographic(cut.local_box(j.rank()).extents), 1);
        for (std::uint64_t epoch = 1; epoch <= 30; ++epoch) {
            const int members = 1 + static_cast<int>(epoch % 3);
            fill_with_oracle(x, cut, j.rank(), epoch);
            std::vector<std::thread> team;
            for (int i = 0; i < members; ++i) team.emplace_back([&, i] { p.start(x, {i, members}); });
            for (std::thread& t : team) t.join();
            ASSERT_EQ(p.finish(), status::ok); // called by one thread: the whole team has started
            ASSERT_EQ(wrong_ghosts<double>(p, cut, 1, epoch), 0);
        }
    });
}

} // namespace
