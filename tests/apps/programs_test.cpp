// SPDX-License-Identifier: Apache-2.0
// What all programs have in common, as seen by a shell: --help, outputs that can't be written, closed streams, readers
// that leave, misspelt variables, limits of the system.
#include <halocline_test/run_command.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

namespace {

using halocline_test::read_text;
using halocline_test::run_command;
using halocline_test::scratch_folder;

const std::string bin = HALOCLINE_BIN "/";
const std::string run2 = bin + "halocline-run -n 2 -- " + bin;
/// The shortest solve; it does not converge.
const std::string short_solve = "coarse_solve --max-iterations 1 --setup 0 --vectors 4";

/// Runs a shell's command line, which contains no single quotes.
halocline_test::command_result shell(const std::string& line) { return run_command("sh -c '" + line + "'"); }

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Expects that the program ended with this code and one line of error that contains `text`.
void expect_one_error(const halocline_test::command_result& run, int exit_code, const std::string& text) {
    EXPECT_EQ(run.exit_code, exit_code) << run.out << run.err;
    EXPECT_TRUE(contains(run.err, text)) << run.err << "\nhas not: " << text;
    EXPECT_EQ(run.err.find('\n'), run.err.size() - 1) << "more than one message, or none:\n" << run.err;
}

/// Runs the line where /mnt is a disk of 64 KiB. Exit code 0 of "true" means that this is possible here.
halocline_test::command_result on_small_disk(const std::string& line) {
    return shell("unshare -rm sh -c \"mount -t tmpfs -o size=64k none /mnt && " + line + "\"");
}

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

TEST(Programs, AnMpiLauncherInsideHaloclineRunIsToldAndOneAroundItIsNot) {
    const auto inside =
        run_command(bin + "halocline-run -n 2 -- env PMI_RANK=1 PMI_SIZE=2 " + bin + "heat4d --grid 4.4.4.4");
    const auto around = shell("PMI_RANK=1 PMIX_RANK=1 OMPI_COMM_WORLD_RANK=1 " + bin + "halocline-run -np 2 -- " + bin +
                              "heat4d --grid 4.4.4.4 --steps 1");

    EXPECT_EQ(inside.exit_code, 2) << inside.out;
    EXPECT_TRUE(contains(inside.err, "heat4d: error: two launchers: halocline-run started rank 0, which started the "
                                     "launcher of an MPI, which started this program (PMI_RANK=1)"))
        << inside.err;
    EXPECT_EQ(around.exit_code, 0) << around.err;
    EXPECT_TRUE(contains(around.out, "on 2 ranks")) << around.out;
}

TEST(Programs, VersionIsOneLine) {
    for (const char* program :
         {"coarse_solve", "generate_gauge", "halocline-info", "heat4d", "halocline-run", "halo_c"}) {
        const auto version = run_command(bin + program + " --version");

        EXPECT_EQ(version.exit_code, 0) << program << version.err;
        EXPECT_EQ(version.out, std::string(program) + " " HALOCLINE_VERSION "\n");
    }
}

TEST(Programs, WithoutConfigFileReadTheJobsKeysFromTheEnvironment) {
    for (const std::string line : {"heat4d --grid 4.4.4.4 --steps 1", "generate_gauge --grid 4.4.4.4 --sweeps 0"}) {
        const auto unknown = run_command("env HALOCLINE_COMM_TRANSPORTS=carrier-pigeon " + run2 + line);
        const auto by_flag =
            run_command("env HALOCLINE_COMM_TRANSPORTS=carrier-pigeon " + run2 + line + " --transport shm,mpi");

        EXPECT_EQ(unknown.exit_code, 2) << unknown.err;
        EXPECT_TRUE(contains(unknown.err, "unknown transport 'carrier-pigeon'; known are")) << unknown.err;
        const auto twice = run_command(run2 + line + " --transport shm,ofi,shm");
        EXPECT_EQ(twice.exit_code, 2) << twice.err;
        EXPECT_TRUE(contains(twice.err, "transport 'shm' is named twice in shm, ofi, shm")) << twice.err;
        EXPECT_EQ(by_flag.exit_code, 0) << by_flag.err;
        EXPECT_TRUE(contains(by_flag.out, "over shm")) << by_flag.out;
    }
}

TEST(Programs, InfoRefusesTheSettingsThatASolveRefuses) {
    const scratch_folder scratch;
    std::ofstream(scratch / "pigeon.toml") << "[comm]\ntransports = [\"carrier-pigeon\"]\n";
    std::ofstream(scratch / "tile.toml") << "[lattice]\ntile = [1, 1, 1, 2]\n";
    for (const std::string wrong : {"pigeon.toml:2:14: [comm] transports", "tile.toml:2:8: [lattice] tile"}) {
        const std::string config = scratch / wrong.substr(0, wrong.find(':'));

        const auto info = run_command(bin + "halocline-info " + config),
                   solve = run_command(bin + "coarse_solve " + config);

        EXPECT_EQ(info.exit_code, 2) << info.out;
        EXPECT_TRUE(contains(info.err, wrong)) << info.err;
        EXPECT_EQ(info.err.substr(info.err.find(": error")), solve.err.substr(solve.err.find(": error")));
    }
}

TEST(Programs, OutputsThatCannotBeWrittenAreToldBeforeTheWork) {
    for (const std::string line :
         {"heat4d --json /nowhere/x", "generate_gauge --grid 4.4.4.4 --json /nowhere/x",
          "generate_gauge --grid 4.4.4.4 --output /nowhere/x", "generate_gauge --grid 4.4.4.4 --output /dev/null"}) {
        const auto run = run_command(run2 + line);

        EXPECT_EQ(run.exit_code, 2) << line << run.err;
        EXPECT_TRUE(contains(run.err, "can")) << run.err;
        EXPECT_TRUE(contains(run.err, line.substr(line.rfind("--")))) << run.err;
        EXPECT_TRUE(run.out.empty()) << run.out;
    }
    EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

TEST(Programs, PathsOfOutputsThatAreNoneAreToldOnce) {
    const scratch_folder scratch;
    std::filesystem::create_symlink("loop", scratch / "loop");
    for (const std::string& path : {scratch / "loop/x", scratch / std::string(300, 'a'), scratch / "pipe"}) {
        const auto run = shell("mkfifo " + (scratch / "pipe") + " 2>/dev/null; " + run2 + "heat4d --json " + path);

        expect_one_error(run, 2, path + ": can");
        EXPECT_TRUE(run.err.starts_with("heat4d: error: --json " + path)) << run.err;
        EXPECT_TRUE(run.out.empty()) << run.out;
    }
}

TEST(Programs, APipeThatIsReadAndWhatALinkLeadsToAreWritten) {
    const scratch_folder scratch;
    const std::string pipe = scratch / "pipe", copy = scratch / "copy", target = scratch / "target";
    std::filesystem::create_symlink("target", scratch / "link");

    const auto piped = shell("mkfifo " + pipe + "; exec 3<>" + pipe + "; " + run2 + "heat4d --json " + pipe +
                             " && head -c 11 <&3 >" + copy); // the shell is its reader throughout
    const auto linked = shell(": >" + target + "; " + run2 + "heat4d --json " + (scratch / "link"));

    EXPECT_EQ(piped.exit_code, 0) << piped.err;
    EXPECT_EQ(read_text(copy), "{\n  \"alpha\"");
    EXPECT_EQ(linked.exit_code, 0) << linked.err;
    EXPECT_TRUE(contains(read_text(target), "checksum")) << read_text(target);
    EXPECT_TRUE(std::filesystem::is_symlink(scratch / "link"));
}

TEST(Programs, WhatALinkLeadsToIsWrittenByEveryFlagThereOrNot) {
    const scratch_folder scratch;
    const std::string link = scratch / "link", target = scratch / "target";
    std::filesystem::create_symlink("target", link);
    for (const std::string line :
         {"heat4d --grid 4.4.4.4 --steps 1 --json ", "generate_gauge --grid 4.4.4.4 --sweeps 0 --output ",
          "coarse_solve --max-iterations 1 --setup 0 --vectors 4 --solution "}) {
        std::filesystem::remove(target);
        for (const char* when : {"not there", "there"}) {
            const auto run = run_command(run2 + line + link);

            EXPECT_EQ(run.err, "") << line << when;
            EXPECT_TRUE(std::filesystem::is_symlink(link)) << line << when;
            EXPECT_FALSE(read_text(target).empty()) << line << when;
        }
    }
    std::filesystem::remove(target);
    expect_one_error(run_command(run2 + "coarse_solve --json " + link + " --solution " + target), 2,
                     "whose place it would take");
}

TEST(Programs, FilesInDevShmAreFilesAndOpenOnesAreAppendedTo) {
    const scratch_folder shm("/dev/shm");
    const std::string file = shm / "result", log = shm / "log";
    std::filesystem::create_symlink("/dev/stdout", shm / "link");

    for (const char* before : {"", "older"}) {
        const auto run =
            shell("printf \"" + std::string(before) + "\" >" + file + "; " + run2 +
                  "generate_gauge --grid 4.4.4.4 --sweeps 0 --output " + (shm / "links") + " --json " + file);

        EXPECT_EQ(run.exit_code, 0) << run.err;
        EXPECT_TRUE(read_text(file).starts_with("{\n  \"beta\"")) << read_text(file);
        EXPECT_GT(std::filesystem::file_size(shm / "links"), 4U * 4 * 4 * 4 * 72 * 8);
    }
    for (const std::string& name : {std::string("/dev/stdout"), std::string("/dev/fd/1"), shm / "link"}) {
        const auto run = shell("echo first >" + log + "; " + bin + "heat4d --json " + name + " >>" + log);

        EXPECT_EQ(run.exit_code, 0) << name << run.err;
        EXPECT_TRUE(read_text(log).starts_with("first\n")) << name << read_text(log);
        EXPECT_TRUE(contains(read_text(log), "checksum")) << name << read_text(log);
    }
    EXPECT_TRUE(std::filesystem::is_symlink(shm / "link"));
}

TEST(Programs, NamesThatAreEmptyAreRefused) {
    for (const std::string line : {"heat4d --json", "heat4d --mpi", "heat4d --transport", "generate_gauge --json",
                                   "generate_gauge --output", "coarse_solve --json", "halocline-info --transport"}) {
        const auto run = run_command(run2 + line + " ''");

        expect_one_error(run, 2, line.substr(line.find("--")) + " '': expected ");
        EXPECT_TRUE(run.out.empty()) << run.out;
    }
}

TEST(Programs, AFullDiskUnderStandardOutputIsAnError) {
    for (const char* program : {"heat4d --steps 1", "halo_c", "heat4d --help", "coarse_solve --version"}) {
        const auto run = shell(run2 + program + " >/dev/full");

        EXPECT_EQ(run.exit_code, 1) << program << run.err;
        EXPECT_TRUE(contains(run.err, "standard output can")) << run.err;
    }
}

TEST(Programs, ADiskThatIsFullAtTheEndIsOneErrorWithFileAndReason) {
    for (const std::string line :
         {"heat4d --steps 1", "generate_gauge --grid 4.4.4.4 --sweeps 0", short_solve.c_str()}) {
        const auto run = run_command(run2 + line + " --json /dev/full");

        expect_one_error(run, 1, ": error: --json /dev/full: can't be written: No space left on device");
        EXPECT_FALSE(run.out.empty()) << line;
    }
}

TEST(SmallDisk, AConfigurationThatDoesNotFitIsOneErrorAndTheRestIsWritten) {
    if (on_small_disk("true").exit_code != 0) GTEST_SKIP() << "no mount namespaces here";
    const scratch_folder scratch;

    const auto run =
        on_small_disk(run2 + "generate_gauge --grid 8.8.8.8 --thermalisation 0 --sweeps 0 --output /mnt/x --json " +
                      (scratch / "r.json"));

    expect_one_error(run, 1, "--output: '/mnt/x");
    EXPECT_TRUE(contains(run.err, "No space left on device")) << run.err;
    EXPECT_TRUE(contains(read_text(scratch / "r.json"), "\"output\": \"\"")) << run.err;
}

TEST(SmallDisk, ADemoConfigurationThatDoesNotFitIsToldBeforeItIsMade) {
    if (on_small_disk("true").exit_code != 0) GTEST_SKIP() << "no mount namespaces here";

    const auto run = on_small_disk("HALOCLINE_DATA_DIR=/mnt " + run2 + "coarse_solve; ls /mnt >&2");

    EXPECT_TRUE(contains(run.err, "No space left on device")) << run.err;
    EXPECT_EQ(run.err.find('\n'), run.err.size() - 1) << "more than one message, or a file left:\n" << run.err;
    EXPECT_FALSE(contains(run.out, "generating")) << run.out;
}

/// As in containers that share their host's network.
TEST(Containers, RanksInPidNamespacesOfTheirOwnAreAJob) {
    const std::string inside = "unshare -rpf ";
    if (shell(inside + "true").exit_code != 0) GTEST_SKIP() << "no pid namespaces here";
    for (const std::string ranks : {"0", "1", "0|1"}) {
        const auto run = shell(bin + "halocline-run -n 2 -- sh -c \"case \\$HALOCLINE_RANK in " + ranks + ") exec " +
                               inside + bin + "heat4d --steps 2;; esac; exec " + bin + "heat4d --steps 2\"");

        EXPECT_EQ(run.exit_code, 0) << ranks << run.err;
        EXPECT_TRUE(contains(run.out, "over shm")) << ranks << run.out;
    }
}

TEST(SmallDisk, ASolutionThatDoesNotFitIsOneErrorAndTheRestIsWritten) {
    if (on_small_disk("true").exit_code != 0) GTEST_SKIP() << "no mount namespaces here";
    const scratch_folder scratch;

    const auto run =
        on_small_disk(run2 + short_solve + " --solution /mnt/x --json " + (scratch / "r.json") + "; ls /mnt");

    EXPECT_TRUE(contains(run.err, "--solution: '/mnt/x")) << run.err;
    EXPECT_TRUE(contains(run.err, "No space left on device")) << run.err;
    EXPECT_EQ(run.err.find('\n'), run.err.size() - 1) << "more than one message:\n" << run.err;
    EXPECT_TRUE(contains(read_text(scratch / "r.json"), "\"solution\":\"\"")) << run.err;
    EXPECT_FALSE(run.out.ends_with("x\n") || run.out.ends_with(".partial\n")) << "left behind:\n" << run.out;
}

TEST(SmallDisk, ASolutionAndAResultThatDoNotFitAreBothTold) {
    if (on_small_disk("true").exit_code != 0) GTEST_SKIP() << "no mount namespaces here";

    const auto run = on_small_disk(run2 + short_solve + " --solution /mnt/x --json /dev/full");

    EXPECT_EQ(run.exit_code, 1) << run.err;
    EXPECT_TRUE(contains(run.err, "--solution: '/mnt/x")) << run.err;
    EXPECT_TRUE(contains(run.err, "--json /dev/full: can't be written")) << run.err;
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

TEST(Programs, VariablesWithAWrongNameAreRefusedWithTheNearest) {
    const std::pair<std::string, std::string> wrong[] = {{"HALOCLINE_COMM_TRANSPORT", "HALOCLINE_COMM_TRANSPORTS"},
                                                         {"HALOCLINE_TRANSPORT", "HALOCLINE_COMM_TRANSPORTS"},
                                                         {"HALOCLINE_DEADLINE_MS", "HALOCLINE_FAULTS_DEADLINE_MS"},
                                                         {"HALOCLINE_CHECKS", "HALOCLINE_CHECK"},
                                                         {"HALOCLINE_DATADIR", "HALOCLINE_DATA_DIR"}};
    for (const auto& [variable, meant] : wrong) {
        const auto run = run_command("env " + variable + "=shm " + run2 + "heat4d --grid 4.4.4.4 --steps 1");

        EXPECT_EQ(run.exit_code, 2) << variable << run.err;
        EXPECT_TRUE(contains(run.err, "'" + variable + "'; the nearest known one is '" + meant + "'")) << run.err;
    }
    for (const std::string key : {"LATTICE_GAUGE", "LATTICE_GRID", "OPERATOR_M0", "SOLVER_SEED", "LEVEL_0_VECTORS"}) {
        const std::string variable = "HALOCLINE_" + key.substr(key.rfind('_') + 1);
        const auto run = run_command("env " + variable + "=8 " + run2 + "coarse_solve --dry-run");

        expect_one_error(run, 2, "unknown variable '" + variable + "'; the nearest known one is 'HALOCLINE_" + key);
    }
    const auto foreign =
        run_command("env HALOCLINE_ROOT=/opt HALOCLINE_PATH=/opt HALOCLINE_HOME=/opt HALOCLINE_DIR=/opt " + run2 +
                    "coarse_solve --dry-run");
    EXPECT_EQ(foreign.exit_code, 0) << foreign.err;
}

TEST(Programs, AConfigFileSwapsTheTransportOfEveryProgram) {
    const scratch_folder scratch;
    const std::string file = scratch / "net.toml";
    std::ofstream(file) << "[comm]\ntransports = ['ofi']\nofi_provider = 'tcp;ofi_rxm'\n";
    if (!contains(run_command(bin + "halocline-info").out, "tcp;ofi_rxm")) GTEST_SKIP() << "no libfabric with tcp";

    for (const std::string program :
         {"halo_c", "heat4d --grid 4.4.4.4 --steps 1", "generate_gauge --grid 4.4.4.4 --sweeps 0",
          "coarse_solve --max-iterations 1 --setup 0"}) {
        const auto as_it_is = run_command(run2 + program);
        const auto by_flag = run_command(bin + "halocline-run -n 2 --config " + file + " -- " + bin + program);
        const auto by_variable = run_command("env HALOCLINE_CONFIG=" + file + " " + run2 + program);

        EXPECT_TRUE(contains(as_it_is.out, "over shm")) << program << as_it_is.out << as_it_is.err;
        EXPECT_TRUE(contains(by_flag.out, "over ofi")) << program << by_flag.out << by_flag.err;
        EXPECT_TRUE(contains(by_variable.out, "over ofi")) << program << by_variable.out << by_variable.err;
    }
    const auto asked = run_command("env HALOCLINE_CONFIG=" + file + " " + run2 + "halo_c shm");
    EXPECT_TRUE(contains(asked.out, "over shm")) << asked.out << asked.err;
}

TEST(Programs, ABadConfigFileIsToldOnceBeforeAnyRankStarts) {
    const scratch_folder scratch;
    std::ofstream(scratch / "bad.toml") << "[comm]\ntransprots = ['shm']\n";
    for (const std::string& start :
         {"env HALOCLINE_CONFIG=" + (scratch / "bad.toml") + " " + run2 + "halo_c",
          bin + "halocline-run -n 2 --config " + (scratch / "bad.toml") + " -- " + bin + "halo_c"}) {
        const auto run = run_command(start);

        expect_one_error(run, 2, "bad.toml:2:14: unknown key '[comm] transprots'; the nearest known one is");
    }
    const auto missing = run_command(bin + "halocline-run -n 2 --config /nowhere.toml -- " + bin + "halo_c");
    EXPECT_EQ(missing.exit_code, 2) << missing.err;
    EXPECT_TRUE(contains(missing.err, "config file '/nowhere.toml': No such file")) << missing.err;
}

TEST(Programs, LimitsOfTheSystemAreErrorsWithTheRemedy) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "the address sanitizer takes more address space than the limits allow";
#endif
    const auto descriptors = shell("ulimit -n 12; " + bin + "halocline-run -n 8 -- " + bin + "heat4d");
    EXPECT_EQ(descriptors.exit_code, 2) << descriptors.err;
    EXPECT_TRUE(contains(descriptors.err, "ulimit -n")) << descriptors.err;

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

TEST(Programs, RanksWithDifferentCommandLinesAreTold) {
    for (const std::string line : {"heat4d --steps ", "generate_gauge --grid 4.4.4.4 --sweeps 0 --seed "}) {
        const auto run = shell(bin + "halocline-run -n 2 -- sh -c \"exec " + bin + line + "\\$HALOCLINE_RANK\"");

        expect_one_error(run, 2, "ranks disagree on the command line: rank 0 has");
    }
    const scratch_folder scratch;
    for (const std::string flag : {"--dry-run", "--json r.json", "--solution s.lime"}) {
        const std::string of_rank_0 = "[ \\$HALOCLINE_RANK = 1 ] || set -- " + flag + "; ";
        const auto run = shell("cd " + (scratch / "") + "; " + bin + "halocline-run -n 2 -- sh -c \"" + of_rank_0 +
                               "exec " + bin + "coarse_solve \\$*\"");

        expect_one_error(run, 2, "ranks disagree on configuration of the run");
        EXPECT_TRUE(contains(run.err, flag.substr(0, flag.find(" ")))) << run.err;
    }
    EXPECT_TRUE(std::filesystem::is_empty(scratch / ""));
}

TEST(Programs, FlagsOfTheLauncherAreGivenOnce) {
    const std::pair<std::string, std::string> wrong[] = {
        {"-n 2 -n 4", "-n is given once"},
        {"-n 2 -np 2", "-n and -np: only one of them is given"},
        {"-n 2 --bind --no-bind", "--bind and --no-bind: only one of them is given"},
        {"-n 2 --no-bind --no-bind", "--no-bind is given once"},
        {"-n 2 --timeout 5 --timeout 6", "--timeout is given once"}};
    for (const auto& [flags, says] : wrong)
        expect_one_error(run_command(bin + "halocline-run " + flags + " -- true"), 2, says);

    EXPECT_EQ(run_command(bin + "halocline-run -n 1 --no-bind -- sh -c \"exit 0\" -n -n").exit_code, 0);
}

TEST(Programs, RanksThatTheJobDoesNotHaveAreTold) {
    const auto run = run_command(bin + "halocline-run -n 2 -- env HALOCLINE_RANK=7 " + bin + "heat4d --steps 1");

    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_TRUE(contains(run.err, "HALOCLINE_RANK")) << run.err;
}

TEST(Programs, ADashIsNoFile) {
    const scratch_folder scratch;
    const std::string there = "cd " + (scratch / "") + " && " + run2;
    const std::string refusal = " -: names no file; standard output has the report. Name a file: ";
    for (const char* line : {"coarse_solve --json -", "generate_gauge --json -", "heat4d --json -"})
        expect_one_error(shell(there + line), 2,
                         refusal + "/dev/stdout adds to the report, ./- is a file of that name");
    for (const char* line : {"coarse_solve --solution -", "generate_gauge --output -"}) // no stream will do
        expect_one_error(shell(there + line), 2, refusal + "./- is a file of that name");
    EXPECT_TRUE(std::filesystem::is_empty(scratch / ""));
}

TEST(Programs, NoOutputTakesThePlaceOfTheConfigFile) {
    const scratch_folder scratch;
    const std::string text = "[operator]\nm0 = 0.4\n", config = scratch / "c", partial = scratch / "s.partial";
    for (const std::string& file : {config, partial}) std::ofstream(file) << text;
    const std::string in_force = "env HALOCLINE_CONFIG=" + config + " ";
    for (const std::string& line :
         {in_force + run2 + "coarse_solve --solution " + config, in_force + run2 + "coarse_solve --json " + config,
          in_force + run2 + "generate_gauge --grid 4.4.4.4 --output " + config,
          bin + "halocline-run -n 2 --config " + config + " -- " + bin + "heat4d --json " + config,
          "env HALOCLINE_CONFIG=" + partial + " " + run2 + "coarse_solve --solution " + (scratch / "s")}) {
        const auto run = run_command(line);

        expect_one_error(run, 2, "the file of the config, whose place it would take");
        EXPECT_TRUE(run.out.empty()) << run.out;
        EXPECT_EQ(read_text(config), text) << line;
        EXPECT_EQ(read_text(partial), text) << line;
    }
}

TEST(Programs, NoOutputTakesThePlaceOfTheDemoConfiguration) {
    const scratch_folder scratch;
    const std::string file = scratch / "demo-8.8.8.8-beta6.0.ildg", in_folder = "env HALOCLINE_DATA_DIR=";
    for (const std::string flag : {"--solution ", "--json "}) {
        const auto run = run_command(in_folder + (scratch / "") + " " + run2 + "coarse_solve " + flag + file);

        expect_one_error(run, 2, "is the file of the demo configuration, whose place it would take");
        EXPECT_TRUE(std::filesystem::is_empty(scratch / "")) << "refused before it is made";
    }
}

TEST(Programs, CacheFoldersThatAreEmptyOrRelativeCountAsUnset) {
    const scratch_folder scratch;
    const struct {
        std::string variable, folder; ///< of the demo configuration, below the scratch folder
        bool counts;
    } cases[] = {{"XDG_CACHE_HOME=", "halocline", false},
                 {"XDG_CACHE_HOME=x", "x/halocline", false},
                 {"XDG_CACHE_HOME=" + (scratch / "x"), "x/halocline", true},
                 {"HOME=", ".cache/halocline", false},
                 {"HOME=.", ".cache/halocline", false},
                 {"HOME=" + (scratch / "x"), "x/.cache/halocline", true}};
    for (const auto& c : cases) {
        std::filesystem::create_directories(scratch / c.folder);
        const auto run =
            shell("cd " + (scratch / "") + "; env -u XDG_CACHE_HOME -u HOME -u HALOCLINE_DATA_DIR " + c.variable + " " +
                  bin + "coarse_solve --dry-run --json " + c.folder + "/demo-8.8.8.8-beta6.0.ildg");

        EXPECT_EQ(run.exit_code, c.counts ? 2 : 0) << c.variable << run.err;
        EXPECT_EQ(contains(run.err, "is the file of the demo configuration"), c.counts) << c.variable << run.err;
    }
}

TEST(Programs, ARankThatTheOthersCannotHearReportsItsErrorItself) {
    for (const std::string damage :
         {"unset HALOCLINE_LIFELINES", "export HALOCLINE_SIZE=3", "export HALOCLINE_LIFELINES=3"}) {
        const auto run = shell(bin + "halocline-run -n 2 -- sh -c \"[ \\$HALOCLINE_RANK = 1 ] && " + damage +
                               "; exec " + bin + "heat4d --grid 4.4.4.4\"");

        EXPECT_EQ(run.exit_code, 2) << damage << run.err;
        EXPECT_TRUE(contains(run.err, "heat4d: error: rank 1: HALOCLINE_LIFELINES=")) << damage << run.err;
    }
}

TEST(Programs, ASectionThatIsAValueIsRefused) {
    const scratch_folder scratch;
    const std::string file = scratch / "c.toml";
    for (const std::string line : {"comm = 3", "faults = true", "comm = []"}) {
        std::ofstream(file) << line << "\n";
        for (const std::string& start :
             {bin + "halocline-run -n 2 --config " + file + " -- " + bin, "env HALOCLINE_CONFIG=" + file + " " + run2})
            expect_one_error(run_command(start + "heat4d --grid 4.4.4.4"), 2, "has the wrong type: it is a section, [");
    }
}

TEST(Programs, OddExtentsAreToldBeforeAnythingElse) {
    for (const std::string grid : {"31.31.31.30", "16777216.1.1.1"}) {
        const auto run = run_command(run2 + "generate_gauge --grid " + grid);

        expect_one_error(run, 2, " is odd: the even/odd update needs even extents");
        EXPECT_TRUE(run.out.empty()) << run.out;
        EXPECT_LT(run.seconds, 5);
    }
}

TEST(Programs, NetworksThatCannotExistAreRefusedOnOneHostToo) {
    for (const std::string network : {"10.0.0.0/99", "10.0.0.0/", "300.1.1.1", "300.1.1.0/8", "", "eth0/24",
                                      "an interface", "a-name-that-is-too-long"}) {
        const std::string heat = " -- " + bin + "heat4d --grid 4.4.4.4 --steps 1";
        expect_one_error(run_command(bin + "halocline-run -n 2 --network '" + network + "'" + heat), 2,
                         "network '" + network + "': expected the name of an interface, an address, or a network");
        if (!network.empty())
            expect_one_error(
                run_command("env 'HALOCLINE_NETWORK=" + network + "' " + bin + "halocline-run -n 2" + heat), 2,
                "network '" + network + "': expected");
    }
    for (const std::string network : {"10.0.0.0/8", "10.1.2.3", "eth0", "fe80::1", "fd00::/8"})
        EXPECT_EQ(run_command(bin + "halocline-run -n 2 --network " + network + " -- " + bin +
                              "heat4d --grid 4.4.4.4 --steps 1")
                      .exit_code,
                  0)
            << network;
}

TEST(Programs, AWrongVariableIsAnErrorWithOneRankToo) {
    for (const std::string variable : {"HALOCLINE_GRACE_MS", "HALOCLINE_STALL_MS", "HALOCLINE_CHECK"})
        expect_one_error(run_command("env " + variable + "=wrong " + bin + "heat4d --grid 4.4.4.4 --steps 1"), 2,
                         "error: " + variable);
}

TEST(Programs, RanksWithDifferentSlabsAreToldTheSizesInForce) {
    const auto run = shell(bin +
                           "halocline-run -n 2 -- sh -c \"[ \\$HALOCLINE_RANK = 1 ] && export "
                           "HALOCLINE_COMM_SLAB_GIB=2; exec " +
                           bin + "heat4d --grid 4.4.4.4 --steps 1\"");

    expect_one_error(run, 2, "slab 68719476736 bytes");
}

/// For instance a file that the others can read. MPICH's launcher waits for all ranks that have not called MPI_Init.
TEST(Programs, BadInputOfOneRankIsOneErrorOfTheJob) {
    const scratch_folder scratch;
    const auto with_bad = [&](const std::string& launch, const std::string& condition) {
        std::ofstream(scratch / "run") << "rank=${HALOCLINE_RANK:-$PMI_RANK}\n"
                                       << condition << " && exec " << bin << "heat4d --grid 4.4.4.4 --steps many\n"
                                       << "exec " << bin << "heat4d --grid 4.4.4.4 --steps 1\n";
        return run_command("timeout 40 " + launch + " -n 3 sh " + (scratch / "run"));
    };
    const auto errors = [](const std::string& text) {
        int n = 0;
        for (std::size_t at = 0; (at = text.find("error:", at)) != std::string::npos; ++at) ++n;
        return n;
    };
    for (const std::string& launch : {bin + "halocline-run", std::string("mpirun.mpich")}) {
        if (run_command("which " + launch).exit_code != 0) continue;
        const auto one = with_bad(launch, "test $rank = 1");
        const auto all = with_bad(launch, "true");

        EXPECT_EQ(one.exit_code, 2) << launch << one.err;
        EXPECT_TRUE(contains(one.err, "heat4d: error: rank 1 on ")) << launch << one.err;
        EXPECT_EQ(errors(one.err), 1) << launch << one.err;
        EXPECT_EQ(all.exit_code, 2) << launch << all.err;
        EXPECT_TRUE(contains(all.err, "heat4d: error: --steps 'many'")) << launch << all.err;
        EXPECT_EQ(errors(all.err), 1) << launch << all.err;
    }
}

TEST(Programs, AWrongVariableOfOneRankIsOneErrorOfTheJobBeforeTheWork) {
    for (const std::string variable :
         {"HALOCLINE_GRACE_MS=wrong", "HALOCLINE_CHECK=wrong", "HALOCLINE_BOOTSTRAP=wrong"}) {
        const std::string ranks = "test $HALOCLINE_RANK = 1 && export " + variable + "; exec " + bin;
        const auto run =
            run_command(bin + "halocline-run -n 2 -- sh -c '" + ranks + "heat4d --grid 4.4.4.4 --steps 1'");

        expect_one_error(run, 2, "'wrong'");
        EXPECT_TRUE(run.err.starts_with("heat4d: error: rank 1 on ")) << variable << run.err;
        EXPECT_TRUE(run.out.empty()) << run.out;
    }
}

#ifdef HALOCLINE_WITH_OFI
/// A connection that lacks a descriptor is never made, and libfabric reports nothing.
TEST(Programs, TooFewDescriptorsForLibfabricAreOneErrorWithTheRemedy) {
    const std::string over_tcp = "env HALOCLINE_COMM_TRANSPORTS=ofi \"HALOCLINE_COMM_OFI_PROVIDER=tcp;ofi_rxm\" ";
    const std::string heat = bin + "heat4d --grid 4.4.4.4 --steps 1";
    ASSERT_EQ(shell(over_tcp + run2 + "heat4d --grid 4.4.4.4 --steps 1").exit_code, 0);
    int refused = 0;
    for (int files = 12; files <= 26; ++files) {
        const auto run = shell(over_tcp + bin + "halocline-run -n 2 -- sh -c \"ulimit -n " + std::to_string(files) +
                               "; exec " + heat + "\"");

        if (run.exit_code == 0) continue;
        ++refused;
        expect_one_error(run, 2, "ulimit -n");
    }
    EXPECT_GE(refused, 5);
}
#endif

TEST(Programs, HostsThatCannotBeReachedAreBadInputAndEndTheOthersAtOnce) {
    const scratch_folder scratch;
    const std::string remote_shell = scratch / "shell";
    std::ofstream(remote_shell) << "#!/bin/sh\nhost=$1\nshift\n[ $host = here ] && exec \"$@\"\nexit 255\n";
    std::filesystem::permissions(remote_shell, std::filesystem::perms::owner_all);
    const std::string launch = bin + "halocline-run --timeout 60 --remote-shell " + remote_shell;
    const std::string heat = " -- " + bin + "heat4d --grid 4.4.4.4 --steps 1";

    const auto reached = run_command(launch + " --hosts here:2" + heat);
    EXPECT_EQ(reached.exit_code, 0) << reached.err;
    for (const char* hosts : {"gone:1", "here:1,gone:2", "gone:1,here:2"}) {
        const auto run = run_command(launch + " --hosts " + hosts + heat);

        expect_one_error(run, 2, "ended with exit code 255; check the name");
        EXPECT_TRUE(run.err.starts_with("halocline-run: host gone can't be reached: '" + remote_shell + " gone "))
            << run.err;
        EXPECT_TRUE(run.out.empty()) << run.out;
    }
}

/// A rank's exit code says nothing of signals, however large it is.
TEST(Programs, ALargeExitCodeIsNoSignal) {
    const scratch_folder scratch;
    const std::string remote_shell = scratch / "shell";
    std::ofstream(remote_shell) << "#!/bin/sh\nshift\nexec \"$@\"\n";
    std::filesystem::permissions(remote_shell, std::filesystem::perms::owner_all);
    for (const std::string& where : {std::string("-n 2"), "--remote-shell " + remote_shell + " --hosts there:2"}) {
        const std::string launch = bin + "halocline-run " + where + " -- ";
        // Whichever rank ends first, the one with code 3 has only lost the other.
        for (const std::string waits : {"0", "1"}) {
            for (const std::string code : {"128", "130", "139", "255"}) {
                const auto run = shell(launch + "sh -c \"[ \\$HALOCLINE_RANK = " + waits +
                                       " ] && sleep 0.3; [ \\$HALOCLINE_RANK = 0 ] && exit " + code + "; exit 3\"");

                EXPECT_EQ(run.exit_code, std::stoi(code)) << where << waits << run.err;
                expect_one_error(run, std::stoi(code), ") on ");
                EXPECT_TRUE(run.err.starts_with("halocline-run: rank 0 (pid ")) << where << waits << run.err;
                EXPECT_TRUE(contains(run.err, " ended with exit code " + code + ", before any rank")) << run.err;
            }
        }
        const auto ended = shell(launch + "sh -c \"kill -SEGV \\$\\$\"");
        EXPECT_EQ(ended.exit_code, 139) << where << ended.err;
        EXPECT_TRUE(contains(ended.err, ") was ended by signal 11 (Segmentation fault)")) << where << ended.err;
    }
}

TEST(Programs, ARankThatFailsAndNeverJoinedTheJobIsNamed) {
    const std::string launch = bin + "halocline-run -n 2 -- ";

    expect_one_error(run_command(launch + "false"), 1, " ended with exit code 1, before any rank had joined the job");
    expect_one_error(shell(launch + "sh -c \"[ \\$HALOCLINE_RANK = 0 ] || exit 5\""), 5, "halocline-run: rank 1 (pid ");
    for (const char* silent : {"true", "sh -c \"exit 2\""}) EXPECT_EQ(shell(launch + silent).err, "") << silent;
    expect_one_error(run_command(launch + bin + "heat4d --steps many"), 2, "heat4d: error: --steps 'many'");
    const auto late = run_command(bin + "halocline-run -n 2 --timeout 0.3 -- sleep 5");
    EXPECT_FALSE(contains(late.err, "joined")) << late.err;
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
    const std::string remote_shell = scratch / "shell";
    std::ofstream(remote_shell) << "#!/bin/sh\nshift\nexec \"$@\"\n";
    std::filesystem::permissions(remote_shell, std::filesystem::perms::owner_all);
    const std::string count =
        bin + "halocline-run --timeout 60 --remote-shell " + remote_shell + " --hosts there:1 -- seq 100000";

    expect_one_error(shell(count + " >/dev/full"), 1,
                     "halocline-run: standard output can't be written: No space left on device");

    const late_reading counted = read_late(count);
    EXPECT_EQ(counted.code, 0);
    EXPECT_EQ(counted.text.size(), 588895U);
}

/// In a tree of its own, where nothing is built and the launcher prints its arguments.
TEST(Scripts, RunFromAnyFolderThroughALinkInAPathWithSpaces) {
    const scratch_folder scratch;
    const std::string tree = scratch / "a tree", programs = tree + "/build/release/bin";
    std::filesystem::create_directories(tree + "/scripts");
    std::filesystem::create_directories(programs);
    std::filesystem::copy_file(HALOCLINE_SOURCE "/scripts/demo.sh", tree + "/scripts/demo.sh");
    std::ofstream(tree + "/scripts/build.sh") << "#!/bin/sh\n";
    std::ofstream(programs + "/halocline-run") << "#!/bin/sh\nprintf '%s\\n' \"$*\"\n";
    for (const std::string& file : {tree + "/scripts/build.sh", programs + "/halocline-run"})
        std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    std::filesystem::create_symlink(tree + "/scripts/demo.sh", scratch / "a link");

    for (const std::string script : {"./a link", "a tree/scripts/demo.sh"}) {
        const auto run = shell("cd " + (scratch / "") + " && CDPATH=/:/usr \"" + script + "\" --np 3 --m0 0");

        EXPECT_EQ(run.exit_code, 0) << run.err;
        EXPECT_EQ(run.out, "-n 3 -- " + programs + "/coarse_solve --m0 0\n") << run.err;
    }
}

/// A copy of the scripts, on a system of a few tools on which nothing can be installed, but by root.
class fake_system {
  public:
    fake_system() {
        std::filesystem::create_directories(folder_ / "scripts");
        for (const std::string script : {"install-dependencies.sh", "build.sh", "test.sh", "bench.sh"})
            std::filesystem::copy_file(HALOCLINE_SOURCE "/scripts/" + script, folder_ / ("scripts/" + script));
        for (const std::string tool : {"bash", "sed", "grep", "dirname", "readlink", "mkdir"}) {
            const std::string path = shell("command -v " + tool).out;
            std::filesystem::create_symlink(path.substr(0, path.find('\n')), folder_ / tool);
        }
        write("dpkg-query", "case \" $MISSING \" in *\" $3 \"*) exit 1;; esac; echo install ok installed");
        write("id", "echo $USER_ID");
        write("sudo", "exit 1");
        write("apt-get", "[ $1 = update ] || echo \"$*\" >" + (folder_ / "installed"));
    }
    void write(const std::string& name, const std::string& text) const {
        std::ofstream(folder_ / name) << "#!/bin/sh\n" << text << "\n";
        std::filesystem::permissions(folder_ / name, std::filesystem::perms::owner_all);
    }
    void remove(const std::string& name) const { std::filesystem::remove(folder_ / name); }
    /// Runs a script where these packages are not installed.
    [[nodiscard]] halocline_test::command_result run(const std::string& script, const std::string& missing,
                                                     int user = 1000) const {
        return run_command("env -u HALOCLINE_WITHOUT_MPI PATH=" + (folder_ / "") + " 'MISSING=" + missing +
                           "' USER_ID=" + std::to_string(user) + " bash " + (folder_ / "scripts/") + script);
    }
    /// What root would have installed.
    [[nodiscard]] std::string installed() const { return read_text(folder_ / "installed"); }

  private:
    scratch_folder folder_;
};

TEST(Scripts, PackagesAreDemandedByWhatNeedsThem) {
    const fake_system here;
    const std::string install = "Missing packages. Run this, then start again:\n  sudo apt-get install -y "
                                "--no-install-recommends ";
    const struct {
        const char *purpose, *missing, *demanded; ///< "": nothing
    } cases[] = {{"build", "qemu-system-x86 nftables spin perftest mpich libfabric-dev ccache", ""},
                 {"build", "spin libhwy-dev mpich", "libhwy-dev"},
                 {"bench", "spin mpich", "mpich"},
                 {"all", "spin mpich libhwy-dev", "libhwy-dev mpich spin"},
                 {"", "spin", "spin"}};
    for (const auto& c : cases) {
        const auto run = here.run(std::string("install-dependencies.sh ") + c.purpose, c.missing);

        EXPECT_EQ(run.exit_code, *c.demanded == '\0' ? 0 : 1) << c.purpose << run.err;
        EXPECT_EQ(run.err, *c.demanded == '\0' ? "" : install + c.demanded + "\n") << c.purpose;
    }
    const auto root = here.run("install-dependencies.sh build", "spin libhwy-dev mpich", 0);
    EXPECT_EQ(root.exit_code, 0) << root.err;
    EXPECT_TRUE(contains(here.installed(), " libhwy-dev mpich -qq\n")) << here.installed();
}

TEST(Scripts, ASystemWithoutDebiansPackagesIsLeftToCMake) {
    const fake_system here;
    here.remove("dpkg-query");

    const auto run = here.run("install-dependencies.sh", "", 0);

    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_TRUE(contains(run.err, "CMake will name what it does not find")) << run.err;
    EXPECT_EQ(here.installed(), "");
}

TEST(Scripts, EachInstallsWhatItsPurposeNeeds) {
    const fake_system here;
    here.write("scripts/install-dependencies.sh", "echo for $1. >&2; exit 1");

    for (const auto& [script, purpose] :
         {std::pair{"build.sh", "build"}, {"test.sh", "all"}, {"bench.sh sum", "bench"}})
        EXPECT_EQ(here.run(script, "").err, std::string("for ") + purpose + ".\n") << script;
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
