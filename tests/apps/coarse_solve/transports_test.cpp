// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <string>
#include <utility>
#include <vector>

namespace coarse_solve_test {
namespace {

TEST(Transports, SharedMemoryAndEachMpiGiveTheSameBits) {
    const json shm = solve(ranks(2), "--mpi 1.1.1.2");
    int mpis = 0;
    for (const char* mpirun : {"mpirun.openmpi", "mpirun.mpich"}) {
        if (!installed(mpirun)) continue;
        ++mpis;
        for (const auto& [transport, mode] :
             {std::pair("mpi", "two-sided"), std::pair("mpi", "one-sided"), std::pair("shm", "two-sided")}) {
            const json other = solve(
                [&, mode](const std::string& a) {
                    return std::string("env HALOCLINE_COMM_MPI_MODE=") + mode + " " + under_mpi(mpirun, 2, a);
                },
                std::string("--mpi 1.1.1.2 --transport ") + transport);
            EXPECT_EQ(other["transport"], transport);
            expect_same_bits(other, shm, std::string(mpirun) + " " + transport + " " + mode);
        }
    }
    if (mpis == 0) GTEST_SKIP() << "no mpirun installed";
}

TEST(Transports, LogsUnderEachMpiLauncherAreText) {
    int mpis = 0;
    for (const char* mpirun : {"mpirun.openmpi", "mpirun.mpich"}) {
        if (!installed(mpirun)) continue;
        ++mpis;
        const command_result r = run_command(under_mpi(mpirun, 2, "--vectors 4 --setup 1 --transport shm"));
        EXPECT_NE(r.out.find("set-up"), std::string::npos) << mpirun << r.out << r.err;
        EXPECT_EQ(r.out.find('\033'), std::string::npos) << mpirun << r.out; // nothing clears lines of a file
    }
    if (mpis == 0) GTEST_SKIP() << "no mpirun installed";
}

#ifdef HALOCLINE_WITH_OFI
TEST(Transports, SharedMemoryAndLibfabricGiveTheSameBits) {
    const char* arguments = "--mpi 1.1.1.2 --vectors 12 --setup 2 ";
    const json shm = solve(ranks(2), arguments);
    std::vector<std::string> providers{"tcp;ofi_rxm", "tcp;ofi_rxm,tagged", "shm"};
#ifdef HALOCLINE_WITH_NET
    providers.emplace_back("net"); // the choice if nobody names one
#endif
    for (const std::string& provider : providers) {
        const json other = solve(
            [&](const std::string& a) {
                return "env 'HALOCLINE_COMM_OFI_PROVIDER=" + provider + "' " + on_ranks(2, a);
            },
            std::string(arguments) + "--transport ofi");
        EXPECT_EQ(other["transport"], "ofi");
        expect_same_bits(other, shm, provider);
    }
}

TEST(Transports, LibfabricWorksUnderEachMpiLauncher) {
    int mpis = 0;
    for (const char* mpirun : {"mpirun.openmpi", "mpirun.mpich"}) {
        if (!installed(mpirun)) continue;
        ++mpis;
        const json result = solve([&](const std::string& a) { return under_mpi(mpirun, 2, a); },
                                  "--vectors 8 --setup 1 --transport ofi");
        EXPECT_EQ(result["transport"], "ofi") << mpirun;
        EXPECT_TRUE(result["converged"]) << mpirun;
    }
    if (mpis == 0) GTEST_SKIP() << "no mpirun installed";
}
#endif

#ifdef HALOCLINE_WITH_VERBS
// For a machine with an RDMA device.
TEST(OverVerbs, TheSameBitsOn4444AsOverSharedMemory) {
    const scratch_folder scratch;
    const std::string gauge = scratch / "4444";
    const command_result made =
        run_command(bin + "/generate_gauge --grid 4.4.4.4 --thermalisation 4 --sweeps 0 --output " + gauge);
    ASSERT_EQ(made.exit_code, 0) << made.err;
    const std::string arguments = "--gauge " + gauge + " --mpi 1.1.1.2 --vectors 4 --setup 1 ";
    const json shm = solve(ranks(2), arguments + "--transport shm");
    const json verbs = solve(ranks(2), arguments + "--transport verbs");
    EXPECT_TRUE(verbs["converged"]);
    EXPECT_EQ(verbs["transport"], "verbs");
    expect_same_bits(verbs, shm, "verbs");
}
#endif

TEST(Transports, ProgramsDoNotLinkMpi) {
    const auto run = run_command("ldd " + bin + "/coarse_solve");

    EXPECT_EQ(run.exit_code, 0);
    EXPECT_EQ(run.out.find("libmpi"), std::string::npos) << run.out;
}

TEST(Bits, AreTheSameFromRunToRun) {
    const json first = solve(ranks(2), ""), second = solve(ranks(2), "");

    expect_same_bits(first, second, "second run");
}

} // namespace
} // namespace coarse_solve_test
