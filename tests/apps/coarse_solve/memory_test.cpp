// SPDX-License-Identifier: Apache-2.0
// The memory that a solve is said to take, compared with what it takes.
#include "program.hpp"
#include "smooth_configuration.hpp"

#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

namespace coarse_solve_test {
namespace {

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // which take memory of their own

/// Of the largest process of a command, in MiB.
double peak_of(const std::string& command) {
    const pid_t shell = ::fork();
    if (shell == 0) ::_exit(std::system((command + " >/dev/null").c_str()) < 0 ? 1 : 0);
    int how = 0;
    rusage used{};
    EXPECT_EQ(::wait4(shell, &how, 0, &used), shell);
    return static_cast<double>(used.ru_maxrss) / 1024;
}

/// Of rank 0, in MiB, by --dry-run.
double told(const std::string& command) {
    std::istringstream lines(run_command(command + " --dry-run").out);
    std::string word;
    double memory = 0;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream row(line);
        if (row >> word && word == "0") row >> word >> word >> memory; // rank, position, box
    }
    return memory;
}

TEST(Memory, IsTold) {
    const scratch_folder scratch;
    const std::string gauge = scratch / "g.ildg";
    write_smooth(gauge, {30, 6, 6, 6}); // in 5 blocks that can't be split over lanes: 3 or more of 8 stay empty
    for (const std::string& options :
         {std::string("--grid 16.8.8.8 --vectors 28"), std::string("--grid 16.8.8.8 --vectors 4"),
          std::string("--grid 16.8.8.8 --vectors 28 --blocks 2.2.4.4"),
          std::string("--grid 16.8.8.8 --vectors 28 --rhs point:0.0.0.0,point:1.0.0.0"),
          std::string("--grid 16.8.8.8 --vectors 28 --rhs point:0.0.0.0 --at-once 1"),
          "--vectors 12 --blocks 6.6.6.6 --gauge " + gauge}) {
        const std::string command = bin + "/coarse_solve " + options;

        const double peak = peak_of(command + " --setup 1 --max-iterations 1"), said = told(command);

        EXPECT_LE(said, peak) << options << ": what fits would be refused";
        EXPECT_GE(said, 0.88 * peak) << options;
    }
}

/// Ranks of one host share its memory, whatever transport they use. A dry run may be for another host.
TEST(Memory, ThatAHostDoesNotHaveIsRefused) {
    struct sysinfo host {};
    ASSERT_EQ(::sysinfo(&host), 0);
    const double have = (static_cast<double>(host.totalram) + static_cast<double>(host.totalswap)) * host.mem_unit;
    const double of_demo = told(bin + "/coarse_solve") * 0x1p20;
    const auto copies = static_cast<long>(1.5 * have / of_demo); // each rank alone would fit
    const std::string grid = "8.8.8." + std::to_string(8 * copies);
#ifdef HALOCLINE_WITH_OFI
    for (const std::string transport : {"shm", "ofi"}) {
#else
    for (const std::string transport : {"shm"}) {
#endif
        // The limit is for a program that goes on.
        const auto solve_there = [&](const std::string& dry_run) {
            return run_command("env HALOCLINE_COMM_SLAB_GIB=1 HALOCLINE_COMM_TRANSPORTS=" + transport +
                               " sh -c 'ulimit -v 8000000; exec " + on_ranks(2, "--grid " + grid + dry_run) + "'");
        };

        const command_result run = solve_there(""), dry = solve_there(" --dry-run");

        EXPECT_EQ(run.exit_code, 2) << transport << run.out << run.err;
        EXPECT_NE(run.err.find("lattice " + grid + " needs at least "), std::string::npos) << transport << run.err;
        EXPECT_EQ(dry.exit_code, 0) << transport << dry.err;
        EXPECT_NE(dry.out.find("note: here it would be refused: lattice " + grid + " needs at least "),
                  std::string::npos)
            << transport << dry.out;
        EXPECT_NE(dry.out.find("\nrank grid "), std::string::npos) << dry.out;
    }
}

#endif

} // namespace
} // namespace coarse_solve_test
