// SPDX-License-Identifier: Apache-2.0
// MPI's side of bench_window: MPI_Isend, and MPI_Start of a persistent send. mpirun -n 2 bench_window_<mpi> [--quick]
#include "support/huge_pages.hpp"
#include "support/run_facts.hpp"
#include "window_steps.hpp"

#include <mpi.h>

#include <cstring>
#include <memory_resource>

int main(int argc, char** argv) {
    using namespace halocline;
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(version, &length);
    const bench::line_head head{rank == 0, std::strncmp(version, "Open MPI", 8) == 0 ? "Open MPI" : "MPICH",
                                bench::facts_of_process().line()};
    const bool quick = argc == 2 && std::strcmp(argv[1], "--quick") == 0;
    const int steps = quick ? 2000 : 50'000;
    const int other = 1 - rank;
    std::size_t wrong = 0;
    if (ranks != 2 || (argc > 1 && !quick)) {
        const char* const what = ranks != 2 ? "2 ranks are needed" : "the only option is --quick";
        if (rank == 0)
            std::fprintf(stderr, "bench_window_mpi: error: %s: mpirun -n 2 bench_window_<mpi> [--quick]\n", what);
        MPI_Barrier(MPI_COMM_WORLD); // rank 0 has printed
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (const std::size_t bytes : bench::window_sizes) {
        bench::huge_memory memory; // ours lie in a slab
        std::pmr::vector<char> out(bytes, &memory), in(bytes, &memory);
        const int count = static_cast<int>(bytes);
        MPI_Request requests[2];
        bench::print_post_times(head, "MPI_Isend", bytes, steps, [&](int n, auto timed) {
            std::fill(out.begin(), out.end(), static_cast<char>(n));
            MPI_Irecv(in.data(), count, MPI_CHAR, other, 0, MPI_COMM_WORLD, &requests[0]);
            timed([&] { MPI_Isend(out.data(), count, MPI_CHAR, other, 0, MPI_COMM_WORLD, &requests[1]); });
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            wrong += in.back() != static_cast<char>(n);
        });
        MPI_Recv_init(in.data(), count, MPI_CHAR, other, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Send_init(out.data(), count, MPI_CHAR, other, 1, MPI_COMM_WORLD, &requests[1]);
        bench::print_post_times(head, "MPI_Start", bytes, steps, [&](int n, auto timed) {
            std::fill(out.begin(), out.end(), static_cast<char>(n + 1));
            MPI_Start(&requests[0]);
            timed([&] { MPI_Start(&requests[1]); });
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            wrong += in.back() != static_cast<char>(n + 1);
        });
        for (MPI_Request& r : requests) MPI_Request_free(&r);
    }
    MPI_Finalize();
    if (wrong > 0)
        std::fprintf(stderr, "bench_window_mpi: %zu messages were not what was sent to rank %d\n", wrong, rank);
    return wrong > 0 ? 1 : 0;
}
