// SPDX-License-Identifier: Apache-2.0
// What an MPI program may do wrong with jobs of its communicators. Linked with one MPI, and run under its mpirun.
#include <halocline/comm/connection.hpp>
#include <halocline/comm/global_sum.hpp>
#include <halocline/comm/job.hpp>
#include <halocline/comm/window.hpp>
#include <halocline_test/refusal.hpp>
#include <halocline_test/run_tests.hpp>

#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace halocline;
using halocline_test::refusal;

TEST(MpiProgram, IsRefusedAJobOfAnIntercommunicator) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm half = MPI_COMM_NULL, between = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 0, &between);

    const std::string text = refusal([&] { (void)comm::job::from_mpi(between); });

    EXPECT_NE(text.find("MPI_Intercomm_merge"), std::string::npos) << text;

    MPI_Comm both = MPI_COMM_NULL;
    MPI_Intercomm_merge(between, rank % 2, &both);
    EXPECT_GT(comm::job::from_mpi(both).ranks(), 1);
    for (MPI_Comm* c : {&half, &between, &both}) MPI_Comm_free(c);
}

/// A large message to an end that its rank never connects is received before MPI_Finalize. MPICH over UCX says otherwise
/// that it was not matched, and newer versions abort.
TEST(MpiProgram, LeavesNoMessageToFinalize) {
    const comm::job j = comm::job::from_mpi(MPI_COMM_WORLD, {.transports = {"mpi"}});
    ASSERT_EQ(j.ranks(), 2);
    std::vector<double> buffer(20'000);
    comm::connection c(j, 1 - j.rank());
    if (j.rank() == 0) {
        comm::send_window<double> out(c, buffer);
        c.connect();
        j.barrier();
        ASSERT_EQ(out.init(), comm::status::ok);
        ASSERT_EQ(out.post(), comm::status::ok);
    } else {
        const comm::recv_window<double> in(c, buffer);
        j.barrier();
    }
}

/// What a program still has after MPI_Finalize.
struct kept {
    comm::job job;
    comm::global_sum sum{job};
    explicit kept(const char* transport)
        : job(comm::job::from_mpi(MPI_COMM_WORLD, {.transports = {transport}, .deadline = std::chrono::seconds(20)})) {}
    /// The status of another sum.
    comm::status add() {
        double one = 1;
        return sum({&one, 1});
    }
};

} // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    testing::InitGoogleTest(&argc, argv);
    int failed = halocline_test::run_tests();
    if (testing::FLAGS_gtest_list_tests) return failed;

    // Any call of MPI's below would end the process with an error.
    const auto over_shm = std::make_unique<kept>("shm"), over_mpi = std::make_unique<kept>("mpi");
    failed |= over_shm->add() != comm::status::ok || over_mpi->add() != comm::status::ok;
    testing::internal::CaptureStderr();
    MPI_Finalize();
    const std::string said = testing::internal::GetCapturedStderr();
    failed |= said.find("MPI_Finalize was called before the end of a job") == std::string::npos;
    failed |= over_shm->add() != comm::status::ok;
    failed |= over_mpi->add() == comm::status::ok;
    if (failed != 0) std::puts(("MPI_Finalize before the end of jobs: " + said).c_str());
    return failed;
}
