// SPDX-License-Identifier: Apache-2.0
// Outputs of programs: names that are none, files that may not be replaced, disks that are full.
#include "programs.hpp"

#include <halocline_test/other_user.hpp>

#include <filesystem>
#include <fstream>
#include <string>

namespace {

using namespace halocline_test;

/// Runs `line` without root's rights; exit code 126: it can't be run so here.
command_result run_as_other_user(const std::string& line) {
    const scratch_folder scratch;
    std::filesystem::permissions(scratch / "", std::filesystem::perms::all);
    const pid_t other = ::fork();
    if (other == 0) {
        if (!drop_privileges()) ::_exit(126);
        const command_result run = run_command(line);
        std::ofstream(scratch / "out") << run.out;
        std::ofstream(scratch / "err") << run.err;
        ::_exit(run.exit_code);
    }
    int how = -1;
    ::waitpid(other, &how, 0);
    return {WIFEXITED(how) ? WEXITSTATUS(how) : -1, read_text(scratch / "out"), read_text(scratch / "err")};
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

/// Each would replace the file: that needs no permission to write to it.
TEST(Programs, FilesThatAreWriteProtectedAreNotReplaced) {
    if (run_as_other_user(bin + "heat4d --help").exit_code != 0)
        GTEST_SKIP() << "the programs can't be run by another user than root, who may write to every file";
    const scratch_folder scratch;
    const std::string file = scratch / "kept";
    std::filesystem::permissions(scratch / "", std::filesystem::perms::all);
    std::ofstream(file) << "old";
    std::filesystem::permissions(file, std::filesystem::perms::owner_read | std::filesystem::perms::group_read |
                                           std::filesystem::perms::others_read);
    for (const std::string line : {"coarse_solve --grid 8.8.8.8 --solution ", "coarse_solve --grid 8.8.8.8 --json ",
                                   "heat4d --json ", "generate_gauge --grid 4.4.4.4 --sweeps 0 --output "}) {
        const auto run = run_as_other_user(run2 + line + file);

        const std::string flag = line.substr(line.rfind("--"));
        expect_one_error(run, 2, flag + file + ": can't be written: it is write-protected");
        EXPECT_TRUE(run.out.empty()) << run.out;
        EXPECT_EQ(read_text(file), "old") << line;
    }
    int files = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(scratch / "")) ++files;
    EXPECT_EQ(files, 1);
}

/// Root may write to every file.
TEST(Programs, AFileThatNobodyMayWriteToIsNotReplacedByRootEither) {
    const scratch_folder scratch;
    const std::string file = scratch / "kept";
    std::ofstream(file) << "old";
    std::filesystem::permissions(file, std::filesystem::perms::owner_read);

    for (const std::string line : {"heat4d --json ", "generate_gauge --grid 4.4.4.4 --sweeps 0 --output "}) {
        expect_one_error(run_command(run2 + line + file), 2, file + ": can't be written: it is write-protected");
        EXPECT_EQ(read_text(file), "old") << line;
    }
}

TEST(Programs, FilesThatNotAllRanksSeeAreToldBeforeTheWork) {
    const scratch_folder scratch;
    std::filesystem::create_directories(scratch / "0");
    std::filesystem::create_directories(scratch / "1");
    const std::string in_folders_of_their_own =
        bin + "halocline-run -n 2 -- sh -c \"cd " + (scratch / "") + "\\$HALOCLINE_RANK; exec " + bin;
    for (const std::string line :
         {"coarse_solve --solution x", "generate_gauge --grid 4.4.4.4 --sweeps 0 --output x"}) {
        const auto run = shell(in_folders_of_their_own + line + "\"");

        expect_one_error(run, 2, line.substr(line.rfind("--")) + ": can't be written: rank 1 on ");
        EXPECT_TRUE(contains(run.err, " can't open '" + (scratch / "1/x."))) << run.err;
        EXPECT_TRUE(contains(run.err, ", which rank 0 on ")) << run.err;
        EXPECT_TRUE(run.out.empty()) << run.out;
    }
    for (const char* folder : {"0", "1"}) EXPECT_TRUE(std::filesystem::is_empty(scratch / folder)) << folder;
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

TEST(Programs, AFileUnderStandardOutputThatMayNotGrowIsAnError) {
    const scratch_folder scratch;
    const std::string log = scratch / "log";
    const std::string limited = "truncate -s 64M " + log + "; export HALOCLINE_COMM_SLAB_GIB=0.03; ulimit -f 65536; ";
    const std::string heat = "heat4d --grid 4.4.4.4 --steps 1";
    for (const std::string& line :
         {run2 + heat, run2 + heat + " --json /dev/stdout", bin + "coarse_solve --version", run2 + "halo_c",
          bin + "halo_c --version", bin + "halo_c --help", bin + "halocline-run --version"}) {
        const auto run = shell(limited + line + " >>" + log);

        EXPECT_EQ(run.exit_code, 1) << line << run.err;
        EXPECT_TRUE(contains(run.err, "standard output can't be written: File too large")) << line << run.err;
        EXPECT_EQ(contains(run.err, "--json /dev/stdout: can't be written: File too large"), contains(line, "--json"))
            << line << run.err;
    }
}

/// 16.16.16.16 sites of 576 bytes.
TEST(Programs, AnOutputThatIsLargerThanFilesMayBeIsToldBeforeTheWork) {
    const scratch_folder scratch;
    for (const std::string limited : {"0", "1"}) {
        const auto run = shell(
            "export HALOCLINE_COMM_SLAB_GIB=0.03; " + bin +
            "halocline-run -n 2 -- sh -c \"[ \\$HALOCLINE_RANK = " + limited + " ] && ulimit -f 65536; exec " + bin +
            "generate_gauge --grid 16.16.16.16 --thermalisation 0 --sweeps 0 --output " + (scratch / "x") + "\"");

        expect_one_error(run, 2, "--output " + (scratch / "x") + ": can't be written: it takes up to 37765120 bytes, ");
        EXPECT_TRUE(contains(run.err, "and a file of rank " + limited + " on ")) << run.err;
        EXPECT_TRUE(contains(run.err, " may have 33554432; raise 'ulimit -f'")) << run.err;
        EXPECT_TRUE(run.out.empty()) << run.out;
    }
    EXPECT_TRUE(std::filesystem::is_empty(scratch / ""));
}

TEST(Programs, ADiskThatIsFullAtTheEndIsOneErrorWithFileAndReason) {
    for (const std::string line :
         {"heat4d --steps 1", "generate_gauge --grid 4.4.4.4 --sweeps 0", short_solve.c_str()}) {
        const auto run = run_command(run2 + line + " --json /dev/full");

        expect_one_error(run, 1, ": error: --json /dev/full: can't be written: No space left on device");
        EXPECT_FALSE(run.out.empty()) << line;
    }
}

/// 8.8.8.8 sites of 576 bytes.
TEST(SmallDisk, AConfigurationThatDoesNotFitIsToldBeforeTheSweeps) {
    if (on_small_disk("true").exit_code != 0) GTEST_SKIP() << "no mount namespaces here";

    const auto run = on_small_disk(run2 + "generate_gauge --grid 8.8.8.8 --output /mnt/x");

    expect_one_error(run, 2, "--output /mnt/x: can't be written: it takes up to 2375680 bytes, and ");
    EXPECT_TRUE(run.out.empty()) << run.out;
}

/// The disk has room for one more than the three that the first run leaves.
TEST(SmallDisk, FilesThatAreReplacedMakeRoomForThoseThatReplaceThem) {
    const std::string disk = "mount -o remount,size=10m /mnt && ";
    if (on_small_disk(disk + "true").exit_code != 0) GTEST_SKIP() << "no mount namespaces here";
    const std::string chain = run2 + "generate_gauge --grid 8.8.8.8 --thermalisation 0 --sweeps 2 --save-every 1 ";

    const auto again = on_small_disk(disk + chain + "--output /mnt/x && " + chain + "--output /mnt/x"),
               beside = on_small_disk(disk + chain + "--output /mnt/x >/dev/null && " + chain + "--output /mnt/y");

    EXPECT_EQ(again.exit_code, 0) << again.err;
    expect_one_error(beside, 2, "--output /mnt/y: can't be written: 3 such files take up to 7127040 bytes, and ");
}

/// The disk fills up during the work: what a killed run left takes its space as long as somebody has it open.
std::string fills_up(int mib, int bytes) {
    return "mount -o remount,size=" + std::to_string(mib) + "m /mnt && head -c " + std::to_string(bytes) +
           " /dev/zero >/mnt/x.partial && exec 3</mnt/x.partial && ";
}

TEST(SmallDisk, AConfigurationThatNoLongerFitsIsOneErrorAndTheRestIsWritten) {
    const std::string full = fills_up(3, 2'000'000);
    if (on_small_disk(full + "true").exit_code != 0) GTEST_SKIP() << "no mount namespaces here";
    const scratch_folder scratch;

    const auto run = on_small_disk(
        full + run2 + "generate_gauge --grid 8.8.8.8 --thermalisation 0 --sweeps 0 --output /mnt/x --json " +
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

/// 8.8.8.8 sites of 192 bytes.
TEST(SmallDisk, ASolutionThatDoesNotFitIsToldBeforeTheWork) {
    if (on_small_disk("true").exit_code != 0) GTEST_SKIP() << "no mount namespaces here";
    for (const std::string name : {"/mnt/x", "x"}) {
        const auto run = on_small_disk("cd /mnt && " + run2 + short_solve + " --solution " + name + "; ls /mnt");

        EXPECT_TRUE(contains(run.err, "--solution " + name + ": can't be written: it takes up to 802816 bytes, and "))
            << run.err;
        EXPECT_TRUE(contains(run.err, std::string(" are free in '") + (name == "x" ? "." : "/mnt") + "'")) << run.err;
        EXPECT_EQ(run.err.find('\n'), run.err.size() - 1) << "more than one message:\n" << run.err;
        EXPECT_TRUE(run.out.empty()) << "work, or a file left:\n" << run.out;
    }
}

TEST(SmallDisk, ADryRunSaysThatASolutionDoesNotFit) {
    if (on_small_disk("true").exit_code != 0) GTEST_SKIP() << "no mount namespaces here";

    const auto run = on_small_disk(run2 + "coarse_solve --dry-run --solution /mnt/x");

    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_TRUE(contains(run.out, "note: here it would be refused: --solution /mnt/x: can't be written: it takes"))
        << run.out;
    EXPECT_TRUE(contains(run.out, "\nrank grid ")) << run.out;
}

TEST(SmallDisk, ASolutionHasRoomBesideAnOlderOneOnlyIfBothFit) {
    const std::string older = "mount -o remount,size=1m /mnt && head -c 600000 /dev/zero >/mnt/x";
    if (on_small_disk(older).exit_code != 0) GTEST_SKIP() << "no mount namespaces here";
    const std::string solve = run2 + short_solve + " --solution /mnt/x";

    const auto both = on_small_disk(older + "; " + solve), killed = on_small_disk(older + ".partial; " + solve);

    expect_one_error(both, 2, "it takes up to 802816 bytes, and ");
    EXPECT_TRUE(contains(killed.out, "wrote /mnt/x")) << "what a killed run left goes first:\n" << killed.err;
}

TEST(SmallDisk, ASolutionThatNoLongerFitsIsOneErrorAndTheRestIsWritten) {
    if (on_small_disk(fills_up(1, 600'000) + "true").exit_code != 0) GTEST_SKIP() << "no mount namespaces here";
    const scratch_folder scratch;

    const auto run = on_small_disk(fills_up(1, 600'000) + run2 + short_solve + " --solution /mnt/x --json " +
                                   (scratch / "r.json") + "; ls /mnt");

    EXPECT_TRUE(contains(run.err, "--solution: '/mnt/x")) << run.err;
    EXPECT_TRUE(contains(run.err, "No space left on device")) << run.err;
    EXPECT_EQ(run.err.find('\n'), run.err.size() - 1) << "more than one message:\n" << run.err;
    EXPECT_TRUE(contains(read_text(scratch / "r.json"), "\"solution\":\"\"")) << run.err;
    EXPECT_FALSE(run.out.ends_with("x\n") || run.out.ends_with(".partial\n")) << "left behind:\n" << run.out;
}

TEST(SmallDisk, ASolutionAndAResultThatDoNotFitAreBothTold) {
    if (on_small_disk(fills_up(1, 600'000) + "true").exit_code != 0) GTEST_SKIP() << "no mount namespaces here";

    const auto run = on_small_disk(fills_up(1, 600'000) + run2 + short_solve + " --solution /mnt/x --json /dev/full");

    EXPECT_EQ(run.exit_code, 1) << run.err;
    EXPECT_TRUE(contains(run.err, "--solution: '/mnt/x")) << run.err;
    EXPECT_TRUE(contains(run.err, "--json /dev/full: can't be written")) << run.err;
}

/// The name of the link is not UTF-8, which JSON is.
TEST(Programs, ResultsHaveTheNameOfTheProgramWhateverItsFileIsCalled) {
    for (const std::string line :
         {"heat4d --steps 1", "generate_gauge --grid 4.4.4.4 --sweeps 0", short_solve.c_str()}) {
        const scratch_folder scratch;
        const std::string program = line.substr(0, line.find(' ')), link = scratch / "h\xe9", file = scratch / "r.json";
        std::filesystem::create_symlink(bin + program, link);

        const auto run = run_command(link + line.substr(program.size()) + " --json " + file);

        EXPECT_EQ(run.exit_code, line == short_solve ? 1 : 0) << line << run.err;
        EXPECT_TRUE(run.err.empty()) << run.err;
        std::string result = read_text(file);
        std::erase(result, ' ');
        EXPECT_TRUE(contains(result, "\"program\":\"" + program + "\"")) << result;
    }
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

} // namespace
