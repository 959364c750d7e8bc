// SPDX-License-Identifier: Apache-2.0
// Teams over MPI, which two threads must never be in at once. MPI's functions are replaced by some that notice that,
// and go on to MPI by its profiling interface.
#include "team_over_network.hpp"

#include <halocline_test/run_tests.hpp>

#include <mpi.h>

using namespace halocline_test;

namespace {

std::atomic<int> calls{0}, inside{0}, meetings{0};

/// A call of MPI, drawn out so that a second one meets it.
class mpi_call {
  public:
    mpi_call() {
        ++calls;
        meetings += inside.fetch_add(1) != 0;
        const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
        while (std::chrono::steady_clock::now() < end) continue;
    }
    ~mpi_call() { --inside; }
    mpi_call(const mpi_call&) = delete;
    mpi_call& operator=(const mpi_call&) = delete;
};

} // namespace

extern "C" int MPI_Start(MPI_Request* request) {
    const mpi_call call;
    return PMPI_Start(request);
}
extern "C" int MPI_Isend(const void* from, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                         MPI_Request* request) {
    const mpi_call call;
    return PMPI_Isend(from, count, type, to, tag, comm, request);
}
extern "C" int MPI_Test(MPI_Request* request, int* done, MPI_Status* status) {
    const mpi_call call;
    return PMPI_Test(request, done, status);
}
extern "C" int MPI_Iprobe(int from, int tag, MPI_Comm comm, int* found, MPI_Status* status) {
    const mpi_call call;
    return PMPI_Iprobe(from, tag, comm, found, status);
}

TEST(TeamsOverMpi, HaveTwoPlansInFlightAndOneThreadAtATimeInMpi) {
    const comm::job j =
        comm::job::from_mpi(MPI_COMM_WORLD, {.transports = {"mpi"}, .deadline = std::chrono::seconds(60)});

    for (const int members : {1, 2, 3}) {
        calls = meetings = 0;
        exchange_two_plans_at_once(j, members);
        EXPECT_GT(calls, 0) << "MPI's functions were not replaced";
        EXPECT_EQ(meetings, 0) << members << " members";
    }
}

int main(int argc, char** argv) {
    int level = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    testing::InitGoogleTest(&argc, argv);
    const int failed = halocline_test::run_tests();
    MPI_Finalize();
    return failed;
}
