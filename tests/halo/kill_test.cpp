// SPDX-License-Identifier: Apache-2.0
// A neighbour is killed while faces go from field to field: written by a core or by a network's device, while the
// others wait for "free" or for the writes. This program is both the tests and the ranks of their jobs.
#include "row_of_ranks.hpp"

#include <halocline/halo/region_plan.hpp>
#include <halocline/lattice/field.hpp>

#include <gtest/gtest.h>
#include <halocline_test/idle_barrier.hpp>
#include <halocline_test/killed_job.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <vector>

namespace halocline_test {

using namespace halocline;

/// Whole pages in [start, start + bytes): who writes there dies.
void forbid_writing(void* start, std::size_t bytes) {
    constexpr std::uintptr_t page = 4096;
    const auto first = (reinterpret_cast<std::uintptr_t>(start) + page - 1) / page * page;
    const auto last = (reinterpret_cast<std::uintptr_t>(start) + bytes) / page * page;
    if (mprotect(reinterpret_cast<void*>(first), last - first, PROT_READ) != 0) std::abort();
}

/// "TRANSPORT-WAIT": a ring, exchanged forever; or rank 1 stops after three exchanges, before it has said that its
/// field may be written ("free"), or before it has written into the others' ("writes"). "joint": as "any", but pieces
/// of faces are copied by ranks that wait. "piece": the same, and rank 1 dies while it copies one, because it may not
/// write its ghosts.
int be_rank(std::string mode) {
    const auto dash = mode.find('-');
    const std::string transport = mode.substr(0, dash), wait = mode.substr(dash + 1);
    constexpr int before = 3;
    try {
        comm::job_options options;
        options.transports = {transport};
        if (transport == "ofi") options.ofi_provider = "tcp;ofi_rxm";
        const comm::job j = comm::job::from_environment(options);
        // Sites of 256 KiB, or of 4 MiB, so that a rank takes a piece sooner or later.
        lattice::field<double> x(row_of(4), wait == "piece" ? 1 << 19 : 1 << 15, &j.memory());
        const row_of_ranks row{j};
        std::vector<halo::transfer> sends = row.sends, receives = row.receives;
        const bool piece = wait == "piece"; // from rank 0 only, so that rank 1 has nothing to do but to help
        if (piece) (j.rank() == 0 ? receives : sends).clear();
        if (piece) (j.rank() == 0 ? sends : receives).pop_back();
        const halo::path way = piece || wait == "joint" ? halo::path::joint : halo::path::direct;
        halo::region_plan plan(j, sends, receives, {halo::bind(x)}, {.name = "faces", .path = way});
        idle_barrier meet(j);
        for (int k = 0; k < before; ++k) {
            plan.start();
            plan.finish_or_throw();
        }
        if (wait == "writes" && j.rank() == 1) plan.start();
        if (wait == "writes") meet(); // rank 1 can't have written yet
        announce(j.rank());
        if ((wait == "free" || wait == "writes") && j.rank() == 1)
            std::this_thread::sleep_for(std::chrono::seconds(20)); // until it is killed
        if (piece && j.rank() == 1) forbid_writing(x.data(), sizeof(double) << 19);
        for (;;) {
            if (piece && j.rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1)); // late
            plan.start();
            plan.finish_or_throw();
        }
    } catch (const comm::rank_failure& e) {
        return report(e.culprit(), e.what());
    }
}

namespace {

class KilledAmongFaces : public testing::TestWithParam<const char*> {};

TEST_P(KilledAmongFaces, SurvivorsNameTheDeadWithinASecond) {
    const std::string mode = GetParam();
    if (lacks_device(mode)) GTEST_SKIP() << "no RDMA device; see comm.verbs_vm";
    const bool any = mode.ends_with("-any") || mode.ends_with("-joint");
    expect_survivors_name_the_dead(mode, any ? -1 : 1, [any](const std::string& f) {
        EXPECT_NE(f.find("while this rank waited for regions 'faces' epoch "), std::string::npos) << f;
        if (any) return;
        EXPECT_NE(f.find("epoch 4: "), std::string::npos) << f;
        EXPECT_NE(f.find("from rank 1 over "), std::string::npos) << f;
    });
}

INSTANTIATE_TEST_SUITE_P(OverShm, KilledAmongFaces, testing::Values("shm-any", "shm-free", "shm-writes", "shm-joint"));

// Rank 0 can't know how much of the piece is there.
TEST(KilledWithAPiece, ARankThatDiesWhileItCopiesAPieceIsNamed) {
    running_job job_under_test(2, "shm-piece", 2, 60); // on a busy machine a piece is seldom taken

    job_under_test.wait();

    ASSERT_EQ(job_under_test.failures.size(), 1u) << job_under_test.said;
    const std::string& f = job_under_test.failures.front();
    EXPECT_NE(f.find(job_under_test.name_of(1)), std::string::npos) << f;
    EXPECT_NE(f.find("while this rank waited for regions 'faces' epoch "), std::string::npos) << f;
    EXPECT_NE(f.find("values to rank 1 over shm, of which that rank is copying pieces"), std::string::npos) << f;
    EXPECT_FALSE(job_under_test.anybody_alive());
}
#ifdef HALOCLINE_WITH_OFI
INSTANTIATE_TEST_SUITE_P(OverOfi, KilledAmongFaces, testing::Values("ofi-any", "ofi-free", "ofi-writes"));
#endif
#ifdef HALOCLINE_WITH_VERBS
INSTANTIATE_TEST_SUITE_P(OverVerbs, KilledAmongFaces, testing::Values("verbs-any", "verbs-free", "verbs-writes"));
#endif

} // namespace
} // namespace halocline_test

int main(int argc, char** argv) {
    return halocline_test::run_tests_or_be_rank(argc, argv, halocline_test::skips::of_some_runs);
}
