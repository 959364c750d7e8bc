// SPDX-License-Identifier: Apache-2.0
// What all programs have in common, as seen by a shell: --help, arguments, streams that are closed or full, readers
// that leave, limits of the system. Outputs, settings and launchers have files of their own.
#include "programs.hpp"

#include <halocline_test/shell_script.hpp>

#include <array>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

namespace {

using namespace halocline_test;

TEST(Programs, HelpIsOneTextWithUsageAndExitCodeZero) {
    for (const char* program :
         {"coarse_solve", "generate_gauge", "halocline-info", "heat4d", "halocline-run", "halo_c"}) {
        const auto help = run_command(bin + program + " --help");

        EXPECT_EQ(help.exit_code, 0) << program << help.err;
        EXPECT_TRUE(contains(help.out, "sage: " + std::string(program))) << help.out;
        EXPECT_TRUE(help.err.empty()) << help.err;
    }
    const auto solve = run_command(run2 + "coarse_solve --help");
    EXPECT_EQ(solve.out.find("Usage:"), solve.out.rfind("Usage:")) << "more than one rank prints";
    EXPECT_TRUE(contains(solve.out, "--tol REAL (1e-10)")) << solve.out;
}

TEST(Programs, AnArgumentTooManyIsOneError) {
    for (const char* program : {"coarse_solve", "generate_gauge", "halocline-info", "heat4d", "halo_c"}) {
        const auto run = run_command(run2 + program + " shm superfluous");

        expect_one_error(run, 2, "argument");
    }
    const auto unknown = run_command(bin + "halo_c carrier-pigeon");
    const auto on_ranks = run_command(run2 + "halo_c carrier-pigeon");
    EXPECT_EQ(on_ranks.exit_code, 2) << on_ranks.out;
    EXPECT_EQ(on_ranks.err, unknown.err);
}

TEST(Programs, VersionIsOneLine) {
    for (const char* program :
         {"coarse_solve", "generate_gauge", "halocline-info", "heat4d", "halocline-run", "halo_c"}) {
        const auto version = run_command(bin + program + " --version");

        EXPECT_EQ(version.exit_code, 0) << program << version.err;
        EXPECT_EQ(version.out, std::string(program) + " " HALOCLINE_VERSION "\n");
    }
}

TEST(Programs, AReaderThatLeavesDoesNotEndTheJob) {
    const scratch_folder scratch;
    const std::string file = scratch / "result.json";

    for (const std::string& program : {"heat4d --steps 1 --json " + file, std::string("halo_c")}) {
        const auto run = shell("{ " + run2 + program + "; echo $? >" + (scratch / "code") + "; } | true");

        EXPECT_EQ(read_text(scratch / "code"), "0\n") << program << run.err;
        EXPECT_TRUE(run.err.empty()) << run.err;
    }
    EXPECT_TRUE(contains(read_text(file), "checksum"));
}

TEST(Programs, StandardStreamsMayBeClosed) {
    for (const std::string streams : {"<&-", "<&- >&-", "<&- >&- 2>&-"}) {
        for (const std::string& launch : {run2, bin}) {
            const auto run = shell(launch + short_solve + " " + streams);

            EXPECT_EQ(run.exit_code, 1) << launch << streams << run.out << run.err;
            EXPECT_TRUE(run.err.empty()) << launch << streams << run.err;
        }
    }
}

TEST(Programs, LimitsOfTheSystemAreErrorsWithTheRemedy) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "the address sanitizer takes more address space than the limits allow";
#endif
    const auto descriptors = shell("ulimit -n 12; " + bin + "halocline-run -n 8 -- " + bin + "heat4d");
    EXPECT_EQ(descriptors.exit_code, 2) << descriptors.err;
    EXPECT_TRUE(contains(descriptors.err, "ulimit -n")) << descriptors.err;

    // A soft limit is raised.
    const auto soft = shell("ulimit -Sn 12; " + bin + "halocline-run -n 8 -- " + bin + "heat4d");
    EXPECT_EQ(soft.exit_code, 0) << soft.err;
    // The limit applies to the ranks, not to the launcher.
    const auto of_ranks = shell(bin + "halocline-run -n 4 -- sh -c \"ulimit -n 14; exec " + bin + "heat4d\"");
    EXPECT_EQ(of_ranks.exit_code, 2) << of_ranks.err;
    EXPECT_TRUE(contains(of_ranks.err, "to meet the other ranks of the job takes 8; raise 'ulimit -n'"))
        << of_ranks.err;
    EXPECT_FALSE(contains(of_ranks.err, "died")) << of_ranks.err;

    // Too small for a slab, and too small for the slabs of two ranks.
    for (const std::string limit : {"ulimit -f 100", "ulimit -v 30000000", "ulimit -v 100000000"}) {
        const auto run = shell(limit + "; " + run2 + "heat4d");
        expect_one_error(run, 2, limit.substr(0, 9));
        EXPECT_TRUE(contains(run.err, "slab_gib")) << run.err;
    }
    const auto fits = shell("ulimit -v 30000000; HALOCLINE_COMM_SLAB_GIB=0.5 " + run2 + "heat4d --steps 1");
    EXPECT_EQ(fits.exit_code, 0) << fits.err;

    const auto fields = shell("ulimit -v 400000; HALOCLINE_COMM_SLAB_GIB=0.02 " + run2 +
                              "generate_gauge --grid 32.32.32.32 --sweeps 0");
    EXPECT_EQ(fields.exit_code, 1) << fields.err;
    EXPECT_TRUE(contains(fields.err, "out of memory; raise 'ulimit -v'")) << fields.err;
    EXPECT_FALSE(contains(fields.err, "bad_alloc")) << fields.err;
    // Where the ranks decide together.
    const auto together = shell("export HALOCLINE_COMM_SLAB_GIB=0.015625; ulimit -v 60000; " + run2 +
                                "coarse_solve --grid 8.8.8.8 --m0 0.5 --vectors 12 --setup 1 --tol 1e-3");
    EXPECT_EQ(together.exit_code, 1) << together.err;
    EXPECT_TRUE(contains(together.err, "out of memory; raise 'ulimit -v'")) << together.err;
    EXPECT_FALSE(contains(together.err, "bad_alloc")) << together.err;

    const auto memory_locked = shell("ulimit -l 0; " + run2 + "heat4d --steps 1");
    EXPECT_EQ(memory_locked.exit_code, 0) << memory_locked.err;
}

TEST(Programs, OddExtentsAreToldBeforeAnythingElse) {
    for (const std::string grid : {"31.31.31.30", "16777216.1.1.1"}) {
        const auto run = run_command(run2 + "generate_gauge --grid " + grid);

        expect_one_error(run, 2, " is odd: the even/odd update needs even extents");
        EXPECT_TRUE(run.out.empty()) << run.out;
        EXPECT_LT(run.seconds, 5);
    }
}

struct late_reading {
    int code = -1;
    std::string text;
};

/// Runs a shell's command line with standard output on a full, non-blocking pipe that is read a while later.
late_reading read_late(const std::string& line) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
    constexpr int output = 9; // a shell redirects single digits
    EXPECT_EQ(::dup2(ends[1], output), output);
    ::close(ends[1]);
    std::size_t before = 0;
    const std::array<char, 4096> filling{};
    for (ssize_t n = 0; (n = ::write(output, filling.data(), filling.size())) > 0;) before += static_cast<size_t>(n);
    late_reading result;
    std::thread run([&] {
        result.code = std::system((line + " >&9").c_str());
        ::close(output);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    std::array<char, 4096> buffer{};
    for (ssize_t n = 0; (n = ::read(ends[0], buffer.data(), buffer.size())) > 0;)
        result.text.append(buffer.data(), static_cast<std::size_t>(n));
    run.join();
    ::close(ends[0]);
    result.text.erase(0, before);
    return result;
}

TEST(Programs, WhatTheyPrintWaitsForRoomInANonBlockingOutput) {
    for (const std::string& launch : {bin, run2}) {
        const late_reading help = read_late(launch + "coarse_solve --help");
        const late_reading run = read_late(launch + "heat4d --grid 4.4.4.4 --steps 1");

        EXPECT_EQ(help.code, 0);
        EXPECT_TRUE(contains(help.text, "Usage: coarse_solve") && contains(help.text, "--tol REAL (1e-10)"));
        EXPECT_EQ(run.code, 0);
        EXPECT_TRUE(contains(run.text, "lattice 4.4.4.4 on ") && contains(run.text, "continuum")) << run.text;
    }
}

/// Their launcher passes it on.
TEST(Programs, WhatRanksOfOtherHostsPrintIsWrittenWholeOrTold) {
    const scratch_folder scratch;
    const std::string remote_shell = shell_of_this_host(scratch);
    const std::string count =
        bin + "halocline-run --timeout 60 --remote-shell " + remote_shell + " --hosts there:1 -- seq 100000";

    expect_one_error(shell(count + " >/dev/full"), 1,
                     "halocline-run: standard output can't be written: No space left on device");
    const std::string log = scratch / "log";
    expect_one_error(shell("truncate -s 1M " + log + "; ulimit -f 1; " + count + " >>" + log), 1,
                     "halocline-run: standard output can't be written: File too large");

    const late_reading counted = read_late(count);
    EXPECT_EQ(counted.code, 0);
    EXPECT_EQ(counted.text.size(), 588895U);
}

TEST(Programs, IterationsAreAsManyAsAskedForAlsoBeyondTheRestarts) {
    const scratch_folder scratch;
    const std::string file = scratch / "result.json";

    // 2 restarts of 3 would be 6.
    const auto run = run_command("env HALOCLINE_SOLVER_RESTART_LENGTH=3 HALOCLINE_SOLVER_MAX_RESTARTS=2 " + run2 +
                                 "coarse_solve --setup 0 --vectors 4 --tol 1e-200 --max-iterations 8 --json " + file);

    EXPECT_EQ(run.exit_code, 1) << run.err;
    EXPECT_TRUE(contains(read_text(file), "\"outer_iterations\":8,")) << read_text(file);
}

} // namespace
