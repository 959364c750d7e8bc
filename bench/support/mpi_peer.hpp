// SPDX-License-Identifier: Apache-2.0
// What the MPI programs driven by bench_<question> --peer share: each line of their standard input is an order, and
// between orders every rank sleeps. Compiled once per MPI.
#pragma once

#include "support/machine.hpp"

#include <mpi.h>

#include <array>
#include <cerrno> // program_invocation_short_name
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <semaphore.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace halocline::bench {

/// Prints the reason, and ends all ranks with exit code 2.
[[noreturn]] inline void give_up(const std::string& why) {
    std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, why.c_str());
    MPI_Abort(MPI_COMM_WORLD, 2);
    std::abort();
}

/// Where ranks sleep until rank 0 has an order: MPI itself would poll.
class bedroom {
  public:
    explicit bedroom(int rank, int ranks) : rank_(rank), ranks_(ranks) {
        int number = static_cast<int>(getpid());
        MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
        const std::string name = "/halocline-bench-mpi-" + std::to_string(number);
        if (rank == 0) {
            shm_unlink(name.c_str()); // what a killed program with this number may have left behind
            open_and_map(name, O_RDWR | O_CREAT | O_EXCL);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank != 0) open_and_map(name, O_RDWR);
        sem_init(&beds_[rank], 1, 0);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) shm_unlink(name.c_str());
    }
    void sleep() {
        while (sem_wait(&beds_[rank_]) != 0 && errno == EINTR) {
        }
    }
    void wake_all() {
        for (int r = 1; r < ranks_; ++r) sem_post(&beds_[r]);
    }

  private:
    void open_and_map(const std::string& name, int how) {
        const std::size_t bytes = sizeof(sem_t) * static_cast<std::size_t>(ranks_);
        const int fd = shm_open(name.c_str(), how, 0600);
        if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0)
            give_up("shm_open: " + std::string(std::strerror(errno)));
        void* const p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        if (p == MAP_FAILED) give_up("mmap: " + std::string(std::strerror(errno)));
        beds_ = static_cast<sem_t*>(p);
    }
    int rank_, ranks_;
    sem_t* beds_ = nullptr;
};

/// The orders on standard input, for every rank.
class orders {
  public:
    orders(int rank, int ranks) : rank_(rank), ranks_(ranks), beds_(rank, ranks) {}
    [[nodiscard]] int rank() const { return rank_; }
    [[nodiscard]] int ranks() const { return ranks_; }
    /// The next order, "" at the end; waits without load. check(order) gives up if it is invalid: only on rank 0, while
    /// the others sleep, so that it is reported once.
    template <class Check>
    std::string next(Check&& check) {
        std::array<char, 256> line{};
        if (rank_ == 0) {
            if (std::fgets(line.data(), line.size(), stdin) == nullptr) line[0] = '\0';
            if (line[0] != '\0') static_cast<void>(check(std::string(line.data())));
            beds_.wake_all();
        } else {
            beds_.sleep();
        }
        MPI_Bcast(line.data(), static_cast<int>(line.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
        return line.data();
    }

  private:
    int rank_, ranks_;
    bedroom beds_;
};

/// main() of such a program: calls serve(orders&), with each rank bound as bench_<question> binds its own. An exception
/// from serve ends all ranks.
template <class Serve>
int run_peer(int argc, char** argv, Serve&& serve) {
    MPI_Init(&argc, &argv);
    int rank = 0, ranks = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!pin_as_bench(rank, ranks) && !pin(rank, ranks)) pin_to_shared(rank, ranks, usable());
    try {
        orders from(rank, ranks);
        serve(from);
    } catch (const std::exception& e) {
        give_up(e.what());
    }
    MPI_Finalize();
    return EXIT_SUCCESS;
}

/// Numbers of all ranks, element-wise maximum.
inline std::vector<double> slowest(std::vector<double> mine) {
    MPI_Allreduce(MPI_IN_PLACE, mine.data(), static_cast<int>(mine.size()), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return mine;
}

} // namespace halocline::bench
