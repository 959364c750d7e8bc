// SPDX-License-Identifier: Apache-2.0
// Jobs under Open MPI's mpirun without any MPI: rank, size and first addresses come from its PMIx server.
#include "contract/bodies.hpp"

#include <halocline/base/error.hpp>
#include <halocline/comm/bad_input.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

using namespace halocline;
using namespace halocline_test;

job_options over(std::vector<std::string> transports) {
    job_options options;
    options.transports = std::move(transports);
    return options;
}

bool loaded(const std::string& library) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        if (line.find("/" + library) != std::string::npos) return true;
    }
    return false;
}

TEST(Pmix, JobsComeAndGoAndNoMpiIsLoaded) {
    for (int n = 0; n < 2; ++n) {
        const job j = job::from_environment(over({"shm"}));
        EXPECT_EQ(j.ranks(), std::atoi(std::getenv("OMPI_COMM_WORLD_SIZE")));
        EXPECT_EQ(j.rank(), std::atoi(std::getenv("OMPI_COMM_WORLD_RANK")));
        EXPECT_EQ(j.transport(), j.ranks() == 1 ? "self" : "shm");
        EXPECT_NE(j.launcher().find("PMIx "), std::string::npos) << j.launcher();
        expect_ring_delivers(j, 200, 500);
        expect_sums_equal_serial(j);
    }
    EXPECT_TRUE(loaded("libpmix"));
    EXPECT_FALSE(loaded("libmpi"));
}

/// It runs its parent's exit handlers, among them the PMIx client's, which has threads only there.
TEST(Pmix, AChildOfForkThatExitsEnds) {
    const job j = job::from_environment(over({"shm"}));

    const pid_t child = fork();
    if (child == 0) std::exit(0);
    int how = -1;
    pid_t ended = 0;
    for (int n = 0; n < 1000 && ended == 0; ++n) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        ended = waitpid(child, &how, WNOHANG);
    }
    if (ended == 0) kill(child, SIGKILL);

    EXPECT_EQ(ended, child);
    EXPECT_EQ(how, 0);
    j.barrier();
}

TEST(Pmix, AnotherBootstrapThatDoesNotFitIsRefused) {
    job_options options = over({"shm"});
    const auto refusal = [&](const char* bootstrap) -> std::string {
        options.bootstrap = bootstrap;
        try {
            const job j = job::from_environment(options);
        } catch (const input_error& e) {
            return e.what();
        }
        return "accepted";
    };
    EXPECT_EQ(refusal("local"), "bootstrap 'local': this program was not started by halocline-run");
    EXPECT_EQ(refusal("slurm"), "unknown bootstrap 'slurm'; known are local, pmix, mpi");
}

TEST(Pmix, RanksWithOtherOptionsAreRefusedWithBothValues) {
    job_options options = over({"shm"});
    if (std::string(std::getenv("OMPI_COMM_WORLD_RANK")) == "1") options.deadline += std::chrono::seconds(1);
    ASSERT_STRNE(std::getenv("OMPI_COMM_WORLD_SIZE"), "1") << "one rank agrees with itself";
    try {
        const job j = job::from_environment(options);
        FAIL();
    } catch (const input_error& e) {
        const std::string text = e.what();
        EXPECT_NE(text.find("ranks disagree on the options of the job: rank 0 has"), std::string::npos) << text;
        for (const char* value : {"deadline 60000 ms", "deadline 61000 ms"})
            EXPECT_NE(text.find(value), std::string::npos);
    }
}

TEST(Pmix, BadInputOfOneRankIsTheErrorOfAll) {
    ASSERT_STRNE(std::getenv("OMPI_COMM_WORLD_SIZE"), "1") << "one rank has no others";
    try {
        if (std::string(std::getenv("OMPI_COMM_WORLD_RANK")) == "1") share_bad_input("no file 'x'");
        const job j = job::from_environment(over({"shm"}));
        FAIL();
    } catch (const unshared_input_error& e) {
        FAIL() << e.what();
    } catch (const input_error& e) {
        const std::string text = e.what();
        EXPECT_TRUE(text.starts_with("rank 1 on ") && text.ends_with(": no file 'x'")) << text;
    }
}

/// A separate run without Open MPI's own variables, as under Slurm's srun --mpi=pmix or PRRTE's prterun.
TEST(PmixAlone, JobsOfDefaultOptionsHaveAllRanks) {
    const job j = job::from_environment();

    EXPECT_EQ(j.ranks(), 3);
    EXPECT_EQ(std::to_string(j.rank()), std::getenv("PMIX_RANK"));
    EXPECT_NE(j.launcher().find("PMIx "), std::string::npos) << j.launcher();
    expect_ring_delivers(j, 200, 500);
}

/// The same: an MPI is needed, and none started the job.
TEST(PmixAlone, TransportMpiAloneIsRefusedOnEveryRank) {
    try {
        const job j = job::from_environment(over({"mpi"}));
        FAIL() << j.ranks();
    } catch (const input_error& e) {
        EXPECT_EQ(std::string(e.what()).find("transport 'mpi' needs an MPI launcher: mpirun -n 3 "), 0u) << e.what();
    }
}

/// A separate run, whose output is judged: rank 1 joins by MPI, and nothing but the launcher can end its MPI_Init.
TEST(PmixMixed, RanksThatJoinByMpiAreNamed) {
    const bool by_mpi = std::string(std::getenv("OMPI_COMM_WORLD_RANK")) == "1";
    try {
        const job j = job::from_environment(over({by_mpi ? "mpi" : "shm"}));
        FAIL();
    } catch (const unshared_input_error& e) {
        std::cout << "refused: " << e.what() << std::endl;
    }
}

/// A separate run: rank 1 arrives after the others have given up.
TEST(PmixMissing, RanksAreNamedAtTheDeadline) {
    job_options options = over({"shm"});
    options.deadline = std::chrono::seconds(5);
    const bool late = std::string(std::getenv("OMPI_COMM_WORLD_RANK")) == "1";
    if (late) std::this_thread::sleep_for(std::chrono::seconds(20));
    std::string text;
    try {
        const job j = job::from_environment(options);
    } catch (const std::exception& e) {
        text = e.what();
    }
    EXPECT_NE(text, "");
    if (!late) {
        EXPECT_NE(text.find("not every rank came within 5000 ms, missing: rank 1, while this rank"), std::string::npos)
            << text;
    }
}

} // namespace
