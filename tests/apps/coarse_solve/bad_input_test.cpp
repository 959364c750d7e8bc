// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"
#include "smooth_configuration.hpp"
#include "source_file.hpp"

#include <algorithm>
#include <fstream>
#include <utility>

namespace coarse_solve_test {
namespace {

struct bad_input {
    const char* arguments; ///< HERE/ is the folder of write_inputs(), SHM/ one in /dev/shm
    const char* says;      ///< part of the message
};
const bad_input bad_inputs[] = {
    {"--grid 8.8.8", "four whole numbers"},
    {"--grid 12.8.8.8", "multiple of 8"},
    {"--mpi 3.1.1.1", "needs 3 ranks, but the job has 2"},
    {"--mpi 65536.65536.65536.65536", "needs more than 2147483647 ranks, but the job has 2 ranks; rank grids of"},
    {"--mpi 1.1.2.1 --blocks 4.4.8.4", "2 ranks that fit 8.8.8.8 in blocks of 4.4.8.4: 1.1.1.2, 1.2.1.1, 2.1.1.1"},
    {"--mpi 1.2.1.1 --blocks 8.8.8.8", "--blocks 4.4.4.4 allows it"},
    {"--blocks 3.4.4.4", "does not divide"},
    {"--vectors 0", "whole number from 1"},
    {"--blocks 1.1.1.2 --vectors 28", "--vectors 28: too many for --blocks 1.1.1.2; such a block has room for 12"},
    {"--gauge HERE/1112.ildg --dry-run",
     "--vectors 28, the default: too many for --blocks 1.1.1.2, the default here; such a block has room for 12"},
    {"HERE/vectors.toml", "vectors.toml:2:11: [[level]] number 0, vectors = 13: too many for "},
    {"HERE/vectors.toml", "vectors.toml:3:10: [[level]] number 0, blocks = 1.1.1.2; such a block has room for 12"},
    {"--tol nan", "relative residual"},
    {"--rhs twos", "ones, unit or random, or file:PATH"},
    {"--rhs file:", "or file:PATH"},
    {"--rhs ones --rhs twos", "--rhs 'twos': expected ones, unit or random"},
    {"--rhs file:HERE/4444.lime --rhs twos", "--rhs 'twos': expected ones, unit or random"},
    {"HERE/sources.toml", "sources.toml:2:7: [solver] rhs = file:a.lime,twos: 'a.lime,twos': can't be opened"},
    {"--rhs random:-1", "--rhs 'random:-1': expected a whole number from 0"},
    {"--rhs", "--rhs needs a value  ("},
    {"--rhs ones,unit --solution -", "--solution -: names no file"},
    {"--rhs ones,unit --solution HERE/", "it is a folder; several solutions are numbered"},
    {"--rhs ones,unit --solution HERE/twin.lime", "twin.01.lime: is the file of --solution"},
    {"--rhs ones,", "--rhs 'ones,': expected ones, unit or random"},
    {"--rhs point:1.2.3", "four whole numbers >= 0, with points between them"},
    {"--rhs point:1.2.3.-4", "four whole numbers >= 0, with points between them"},
    {"--rhs point:1.2.3.4:", "a spin from 0 to 3 and a colour from 0 to 2"},
    {"--rhs point:1.2.3.4:4.0", "a spin from 0 to 3 and a colour from 0 to 2"},
    {"--rhs point:1.2.3.4:0.3", "a spin from 0 to 3 and a colour from 0 to 2"},
    {"--rhs point:1.2.8.4", "--rhs point:1.2.8.4:0.0: no site of the lattice, which is 8.8.8.8"},
    {"HERE/point.toml", "point.toml:2:7: [solver] rhs = point:0.0.0.8:1.2: no site of the lattice"},
    {"--gauge HERE/4444.ildg --rhs ones --rhs file:HERE/flipped.lime", "SciDAC checksum of the data is"},
    {"--gauge HERE/4444.ildg --rhs ones --rhs file:HERE/tiny.lime", "tiny.lime: the norm of its field is "},
    {"--gauge HERE/4444.ildg --rhs ones --rhs file:HERE/x.01.lime --solution HERE/x.lime",
     "x.01.lime: is the file of --rhs, whose place it would take"},
    {"--rhs ones --rhs unit --json HERE/x.01.lime --solution HERE/x.lime", "x.01.lime: is the file of --json"},
    {"--rhs file:/nowhere/at/all", "'/nowhere/at/all': can't be opened: No such file"},
    {"--rhs file:/dev/zero", "'/dev/zero': is not a regular file"},
    {"--rhs file:HERE/not-a-gauge-file", "is no LIME file: fermion fields in SciDAC's format can be read"},
    {"--rhs file:HERE/small.ildg", "is a gauge configuration (ILDG), not a fermion field"},
    {"--gauge HERE/small.lime", "on each site 1 of 192 bytes; links of precision D are 4 of 144"},
    {"--rhs file:HERE/small.lime", "small.lime holds a field on 2.2.2.2 sites, but the lattice is 8.8.8.8"},
    {"HERE/source.toml --gauge HERE/4444.ildg", "source.toml:2:7: [solver] rhs = file:"},
    {"--gauge HERE/4444.ildg --tile 2.1.1.1 --rhs file:HERE/4444.lime", "but the lattice is 8.4.4.4"},
    {"--gauge HERE/4444.ildg --rhs file:HERE/truncated.lime", "the file is truncated or corrupted"},
    {"--gauge HERE/4444.ildg --rhs file:HERE/flipped.lime", "SciDAC checksum of the data is"},
    {"--gauge HERE/4444.ildg --rhs file:HERE/nan.lime", "holds a NaN or an infinity at site 1.2.3.0"},
    {"--gauge HERE/4444.ildg --rhs file:HERE/propagator.lime", "<spins> as 1"},
    {"--gauge HERE/4444.ildg --rhs file:HERE/tiny.lime", "tiny.lime: the norm of its field is "},
    {"--gauge HERE/4444.ildg --rhs file:HERE/huge.lime", "huge.lime: the norm of its field is inf: scale it"},
    {"--solution /nowhere/x.lime", "--solution /nowhere/x.lime: can't be written: No such file"},
    {"--solution HERE/", "is a folder"},
    {"--solution /dev/null", "it is no regular file"},
    {"--solution HERE/taken.lime", "taken.lime.partial' is a folder"},
    {"--solution ''", "--solution '': expected FILE"},
    {"--gauge HERE/4444.ildg --solution HERE/4444.ildg", "is the file of --gauge, whose place it would take"},
    {"--gauge HERE/4444.ildg --rhs file:HERE/4444.lime --solution HERE/./4444.lime", "is the file of --rhs"},
    {"--json HERE/never.json --solution HERE/never.json", "is the file of --json"},
    {"--gauge HERE/4444.ildg --json HERE/4444.ildg", "4444.ildg: is the file of --gauge, whose place it would take"},
    {"--gauge HERE/4444.ildg --rhs file:HERE/4444.lime --json HERE/./4444.lime", "is the file of --rhs"},
    {"--gauge HERE/4444.ildg --json /proc/self/rootHERE/4444.ildg", "is the file of --gauge"},
    {"--gauge SHM/4444.ildg --json SHM/4444.ildg", "is the file of --gauge"},
    {"--gauge SHM/4444.ildg --json SHM/link", "is the file of --gauge"},
    {"--json /dev/nul", "--json /dev/nul: can't be written: No such file"},
    {"HERE/4444.toml --json HERE/4444.toml", "is the file of the config"},
    {"HERE/4444.toml --solution HERE/4444.toml", "is the file of the config"},
    {"--gauge HERE/4444.ildg.partial --solution HERE/4444.ildg", "4444.ildg.partial', the file of --gauge"},
    {"--gauge HERE/4444.ildg --json HERE/never.json.partial --solution HERE/never.json",
     "never.json.partial', the file of --json"},
    {"--gauge HERE/4444.ildg --json HERE/never.json --solution HERE/never.json.partial",
     "never.json.partial', the file of --solution"},
    {"--transport carrier-pigeon", "carrier-pigeon"},
    {"--transport mpi", "mpirun -n 2"},
    {"--gauge /nowhere/at/all", "/nowhere/at/all"},
    {"--gauge HERE/not-a-gauge-file", "not-a-gauge-file"},
    {"--tile 2.1.1.1", "--tile"},
    {"HERE/unknown.toml", "unknown.toml:2:"},
    {"HERE/unknown.toml", "tolerance"},
    {"HERE/section.toml", "[solver]"},
    {"HERE/broken.toml", "broken.toml:1"},
    {"HERE/ranks.toml", "ranks.toml:2:7: [lattice] mpi = 3.1.1.1 needs 3 ranks"},
    {"HERE/grid.toml", "grid.toml:3:8: [lattice] grid = 12.8.8.8: without"},
    {"HERE/other-grid.toml", "other-grid.toml:3:8: [lattice] grid = 4.2.2.2 disagrees"},
    {"HERE/tile.toml", "tile.toml:2:8: [lattice] tile = 2.1.1.1: repeats a gauge file"},
    {"HERE/array.toml", "array.toml:2:6: [operator] m0: expected one string, number or boolean"},
    {"HERE/zero.toml", "zero.toml:2:9: [lattice] gauge: expected a text without zero bytes"},
    {"HERE/blocks.toml", "blocks.toml:2:10: [[level]] number 0, blocks = 3.4.4.4 does not divide"},
    {"HERE/transports.toml",
     "transports.toml:2:14: [comm] transports = shm,carrier-pigeon: unknown transport 'carrier-pigeon'"},
    {"HERE/old-order.toml", "unknown key '[comm] rank_order'; the nearest known one is '[lattice] rank_order'"},
    {"/nowhere/config.toml", "'/nowhere/config.toml': No such file"},
    {"/dev/null", "'/dev/null': is not a regular file"},
    {"--m0 0 --m0 1", "--m0 is given once"},
    {"--json /nowhere/result.json", "/nowhere/result.json"},
    {"--json HERE/", "is a folder"},
    {"--gauge ''", "--gauge '': expected FILE; without --gauge its default holds"},
    {"''", "config '': expected FILE"},
    {"--json HERE/never.json --mpi 2.2.2.2", "needs 16 ranks"},
    {"--grid 2147483640.2147483640.2147483640.2147483640", "1e15 sites"},
    {"--grid 400.400.400.400", "GiB"},
    {"--gauge HERE/small.ildg --tile 2147483647.1.1.1", "--tile"},
    {"--no-such-flag", "no-such-flag"},
    {"--kappa 0.125", "unknown flag '--kappa'; the mass is m0 = 1 / (2 kappa) - 4"},
    {"--mass 0.1", "unknown flag '--mass'; the mass is m0"},
    {"HERE/kappa.toml", "unknown key '[operator] kappa'; "},
    {"HERE/kappa.toml", "; the mass is m0 = 1 / (2 kappa) - 4, --m0 or [operator] m0"},
};

void write_inputs(const scratch_folder& scratch) {
    std::ofstream(scratch / "unknown.toml") << "[solver]\ntolerence = 1e-8\n";
    std::ofstream(scratch / "section.toml") << "[solvr]\nseed = 1\n";
    std::ofstream(scratch / "old-order.toml") << "[comm]\nrank_order = 'nodes'\n";
    std::ofstream(scratch / "broken.toml") << "[solver\n";
    std::ofstream(scratch / "not-a-gauge-file") << "hello";
    write_smooth(scratch / "small.ildg", {2, 2, 2, 2});
    write_smooth(scratch / "1112.ildg", {1, 1, 1, 2});
    write_smooth(scratch / "4444.ildg", {4, 4, 4, 4});
    write_source(scratch / "small.lime", {2, 2, 2, 2});
    write_source(scratch / "4444.lime", {4, 4, 4, 4});
    write_source(scratch / "tiny.lime", {4, 4, 4, 4}, 0x1p-1040);
    write_source(scratch / "huge.lime", {4, 4, 4, 4}, 0x1p1020);
    damage_sources(scratch / "4444.lime", scratch / "");
    std::filesystem::copy_file(scratch / "4444.ildg", scratch / "4444.ildg.partial");
    std::ofstream(scratch / "4444.toml") << "[lattice]\ngauge = '" << scratch / "4444.ildg"
                                         << "'\n";
    std::ofstream(scratch / "ranks.toml") << "[lattice]\nmpi = [3, 1, 1, 1]\n";
    std::ofstream(scratch / "grid.toml") << "[lattice]\n\ngrid = [12, 8, 8, 8]\n";
    std::ofstream(scratch / "other-grid.toml") << "[lattice]\ngauge = '" << scratch / "small.ildg"
                                               << "'\ngrid = [4, 2, 2, 2]\n";
    std::ofstream(scratch / "tile.toml") << "[lattice]\ntile = [2, 1, 1, 1]\n";
    std::ofstream(scratch / "array.toml") << "[operator]\nm0 = [1, 2]\n";
    std::ofstream(scratch / "zero.toml") << "[lattice]\ngauge = \"a\\u0000b\"\n";
    std::ofstream(scratch / "blocks.toml") << "[[level]]\nblocks = [3, 4, 4, 4]\n";
    std::ofstream(scratch / "vectors.toml") << "[[level]]\nvectors = 13\nblocks = [1, 1, 1, 2]\n";
    std::ofstream(scratch / "sources.toml") << "[solver]\nrhs = ['ones', 'file:a.lime', 'twos']\n";
    for (const char* twin : {"twin.00.lime", "twin.01.lime"})
        std::filesystem::create_symlink("same.lime", scratch / twin);
    std::ofstream(scratch / "point.toml") << "[solver]\nrhs = ['ones', 'point:0.0.0.8:1.2']\n";
    std::ofstream(scratch / "source.toml") << "[solver]\nrhs = 'file:" << scratch / "small.lime"
                                           << "'\n";
    std::ofstream(scratch / "kappa.toml") << "[operator]\nkappa = 0.125\n";
    std::filesystem::create_directory(scratch / "taken.lime.partial");
    std::ofstream(scratch / "transports.toml") << "[comm]\ntransports = ['shm', 'carrier-pigeon']\n";
}

TEST(BadInput, IsOneClearErrorWithExitCodeTwo) {
    const scratch_folder scratch;
    write_inputs(scratch);
    const scratch_folder shm("/dev/shm");
    std::filesystem::copy_file(scratch / "4444.ildg", shm / "4444.ildg");
    std::filesystem::create_symlink("4444.ildg", shm / "link");
    for (const bad_input& c : bad_inputs) {
        std::string arguments = c.arguments;
        for (const auto& [name, folder] :
             {std::pair<std::string, std::string>{"HERE/", scratch / ""}, {"SHM/", shm / ""}})
            for (std::size_t at; (at = arguments.find(name)) != std::string::npos;)
                arguments.replace(at, name.size(), folder);

        const auto run = run_command(on_ranks(2, arguments));

        EXPECT_EQ(run.exit_code, 2) << arguments << "\n" << run.out << run.err;
        EXPECT_NE(run.err.find(c.says), std::string::npos) << arguments << "\n" << run.err;
        const auto first = run.err.find("error:");
        EXPECT_NE(first, std::string::npos) << run.err;
        EXPECT_EQ(run.err.find("error:", first + 1), std::string::npos) << "more than one message:\n" << run.err;
        double seconds = run.seconds; // the promise is 1 s; one run may have to wait for its processors
        for (int more = 0; more < 3 && seconds >= 1; ++more)
            seconds = std::min(seconds, run_command(on_ranks(2, arguments)).seconds);
        EXPECT_LT(seconds, 1) << arguments;
    }
    EXPECT_FALSE(std::filesystem::exists(scratch / "never.json"));
    const std::string whole = halocline_test::read_text(scratch / "4444.ildg.partial");
    EXPECT_EQ(halocline_test::read_text(scratch / "4444.ildg"), whole);
    EXPECT_EQ(halocline_test::read_text(shm / "4444.ildg"), whole);
}

TEST(BadInput, RanksThatTheBlocksForbidAreToldWhichBlocksAllowThem) {
    const scratch_folder scratch;
    write_smooth(scratch / "6.ildg", {6, 6, 6, 6});
    write_smooth(scratch / "7.ildg", {7, 5, 3, 4});
    const struct {
        int ranks;
        std::string arguments;
        const char* blocks; ///< "": no blocks would fit
    } cases[] = {{3, "", "2.2.2.2"},
                 {3, "--blocks 4.4.4.4", "2.2.2.2"},
                 {3, "--mpi 1.1.1.3", "2.2.2.2"},
                 {3, "--gauge " + (scratch / "6.ildg"), "2.2.2.2"},
                 {3, "--gauge " + (scratch / "7.ildg"), "1.1.3.4"},
                 {5, "--vectors 6", "1.2.2.2"}, // and not 1.1.1.1, whose coarse grid would be as large
                 {3, "--vectors 512 --gauge " + (scratch / "7.ildg"), "7.5.3.1"},
                 {5, "--vectors 512 --gauge " + (scratch / "7.ildg"), ""}};
    for (const auto& c : cases) {
        const auto refused = run_command(on_ranks(c.ranks, c.arguments + " --dry-run"));

        EXPECT_EQ(refused.exit_code, 2) << c.arguments << refused.out;
        if (*c.blocks == '\0') continue;
        const std::string advice = "--blocks " + std::string(c.blocks);
        EXPECT_NE(refused.err.find(advice + " allows it"), std::string::npos) << refused.err;
        if (c.arguments.find("--blocks") != std::string::npos) continue;
        const auto advised = run_command(on_ranks(c.ranks, c.arguments + " --dry-run " + advice));
        EXPECT_EQ(advised.exit_code, 0) << advised.err;
    }
}

TEST(BadInput, IsToldBeforeTheDemoConfigurationIsMade) {
    const scratch_folder scratch;
    for (const char* flag : {"--grid 12.8.8.8", "--blocks 3.4.4.4", "--mpi 4.1.1.1", "--grid 400.400.400.400",
                             "--blocks 1.1.1.2 --vectors 13", "--blocks 1.1.1.2 --vectors 13 --dry-run"}) {
        const auto run = run_command("env HALOCLINE_DATA_DIR=" + (scratch / "") + " " + on_ranks(2, flag));

        EXPECT_EQ(run.exit_code, 2) << flag << run.err;
        EXPECT_EQ(run.out.find("generating"), std::string::npos) << run.out;
        EXPECT_TRUE(std::filesystem::is_empty(scratch / "")) << flag;
    }
    const auto nowhere = run_command("env HALOCLINE_DATA_DIR=/proc " + on_ranks(2, "")); // to which root may write

    EXPECT_EQ(nowhere.exit_code, 2) << nowhere.err;
    EXPECT_EQ(nowhere.out.find("generating"), std::string::npos) << nowhere.out;
}

/// As on hosts that have a file of their own, or none.
TEST(BadInput, AFileThatOnlyOneRankCannotReadIsToldWithThatRank) {
    const scratch_folder scratch;
    for (const char* folder : {"0", "1"}) std::filesystem::create_directory(scratch / folder);
    write_smooth(scratch / "0/g.ildg", {4, 4, 4, 4});
    write_source(scratch / "0/b.lime", {4, 4, 4, 4});
    const auto in_folders_of_their_own = [&](const std::string& arguments) {
        return run_command(bin + "/halocline-run -n 2 -- sh -c 'cd " + (scratch / "") + "$HALOCLINE_RANK; exec " + bin +
                           "/coarse_solve " + arguments + "'");
    };
    const auto gauge = in_folders_of_their_own("--gauge g.ildg");
    std::filesystem::copy_file(scratch / "0/g.ildg", scratch / "1/g.ildg");
    const auto source = in_folders_of_their_own("--gauge g.ildg --rhs file:b.lime");

    for (const auto& [run, file] : {std::pair{gauge, "g.ildg"}, {source, "b.lime"}}) {
        const std::string text = std::string("'") + file + "': can't be opened: No such file or directory (rank 1 on ";
        EXPECT_EQ(run.exit_code, 2) << run.out;
        EXPECT_NE(run.err.find(text), std::string::npos) << run.err;
    }
}

/// What a file says of itself decides what the ranks do next.
TEST(BadInput, FilesThatDifferBetweenRanksAreToldWithBothHeads) {
    const scratch_folder scratch;
    for (const char* folder : {"0", "1"}) std::filesystem::create_directory(scratch / folder);
    write_smooth(scratch / "0/g.ildg", {4, 4, 4, 4});
    write_smooth(scratch / "1/g.ildg", {4, 4, 4, 2});
    for (const char* more : {"", " --grid 4.4.4.4", " --blocks 2.2.2.4"}) {
        const auto run = run_command(bin + "/halocline-run -n 2 -- sh -c 'cd " + (scratch / "") +
                                     "$HALOCLINE_RANK; exec " + bin + "/coarse_solve --gauge g.ildg" + more + "'");
        EXPECT_EQ(run.exit_code, 2) << run.out;
        EXPECT_NE(run.err.find("what the gauge file says of itself"), std::string::npos) << run.err;
        EXPECT_NE(run.err.find("4.4.4.2"), std::string::npos) << run.err;
    }
}

} // namespace
} // namespace coarse_solve_test
