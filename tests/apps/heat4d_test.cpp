// SPDX-License-Identifier: Apache-2.0
// heat4d from outside, and compared with its twin in plain MPI.
#include <gtest/gtest.h>
#include <halocline_test/passage.hpp>
#include <halocline_test/run_command.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

using namespace halocline_test;

namespace {

const std::string bin = HALOCLINE_BIN;

command_result heat(int ranks, const std::string& flags) {
    return run_command(bin + "/halocline-run -n " + std::to_string(ranks) + " -- " + bin + "/heat4d " + flags);
}

nlohmann::json results(int ranks, const std::string& flags) {
    const scratch_folder scratch;
    const command_result r = heat(ranks, flags + " --json " + (scratch / "r.json"));
    EXPECT_EQ(r.exit_code, 0) << flags << ": " << r.out << r.err;
    return nlohmann::json::parse(read_text(scratch / "r.json"), nullptr, false);
}

} // namespace

TEST(Heat4d, DecaysByTheEigenvalue) {
    const auto r = results(1, "--grid 12.8.10.6 --steps 40 --alpha 0.11");

    double lambda = 1;
    for (int extent : {12, 8, 10, 6}) lambda -= 0.11 * 4 * std::pow(std::sin(std::numbers::pi / extent), 2);
    const double expected = std::pow(lambda, 40);
    EXPECT_NEAR(r["amplitude"].get<double>() / expected, 1, 1e-12);
    EXPECT_LT(r["largest_deviation"].get<double>(), 1e-14);
    EXPECT_NEAR(std::log(r["continuum"].get<double>()) / std::log(expected), 1, 0.15); // due to the lattice spacing
    EXPECT_GT(std::abs(r["continuum"].get<double>() / expected - 1), 1e-3);
}

TEST(Heat4d, IsRightWhereTheEigenvalueVanishes) {
    for (const std::string flags : {"--grid 4.4.4.4 --alpha 0.125 --steps 1", "--grid 4.4.4.4 --alpha 0.125 --steps 3",
                                    "--grid 2.2.1.1 --alpha 0.125 --steps 1", "--grid 2.4.4.1 --alpha 0.125 --steps 2",
                                    "--grid 4.4.4.4 --alpha 0.1249999 --steps 2", "--grid 4.4.4.4 --steps 0"})
        for (const int ranks : {1, 2}) {
            const command_result r = heat(ranks, flags);

            EXPECT_EQ(r.exit_code, 0) << flags << r.out << r.err;
        }
}

TEST(Heat4d, GivesTheSameBitsOnEveryCut) {
    const std::string flags = "--grid 6.4.5.8 --steps 30 ";
    const auto one = results(1, flags);

    EXPECT_EQ(one["ranks"], 1);
    for (const auto& r :
         {results(2, flags), results(2, flags + "--mpi 2.1.1.1"), results(3, flags + "--mpi 1.1.3.1"),
          results(4, flags), results(4, flags + "--mpi 1.2.1.2"), results(4, flags + "--mpi 1.4.1.1")}) {
        EXPECT_EQ(r["checksum"], one["checksum"]) << r.dump();
        EXPECT_EQ(r["amplitude"], one["amplitude"]);
    }
    EXPECT_NE(results(1, "--grid 6.4.5.8 --steps 31")["checksum"], one["checksum"]);

    for (const auto& [grid, several] :
         {std::pair{"7.5.3.11", std::vector{3, 5}}, {"1.1.1.12", {12}}}) { // parts of unlike sizes, of one site
        const auto whole = results(1, std::string("--steps 30 --grid ") + grid);
        for (const int ranks : several) {
            const auto cut = results(ranks, std::string("--steps 30 --grid ") + grid);

            EXPECT_EQ(cut["ranks"], ranks);
            EXPECT_EQ(cut["checksum"], whole["checksum"]) << cut.dump();
        }
    }
}

// Ranks dealt out to two nodes alternately have other places of the rank grid than on one node.
TEST(Heat4d, GivesTheSameBitsOnSeveralNodes) {
    const std::string flags = "--grid 6.4.5.8 --mpi 1.1.1.4 --steps 30 --json ";
    const scratch_folder scratch;
    const command_result r =
        run_command(bin + "/halocline-run -n 4 -- sh -c 'HALOCLINE_NODE=$((HALOCLINE_RANK % 2)) exec " + bin +
                    "/heat4d " + flags + (scratch / "r.json") + "'");
    if (r.err.find("no transport") != std::string::npos) GTEST_SKIP() << "nothing that joins nodes: " << r.err;
    ASSERT_EQ(r.exit_code, 0) << r.err;
    const auto dealt = nlohmann::json::parse(read_text(scratch / "r.json"));

    EXPECT_NE(dealt["transport"], "shm");
    EXPECT_EQ(dealt["checksum"], results(1, "--grid 6.4.5.8 --steps 30")["checksum"]);
}

TEST(Heat4d, GivesTheSameBitsAsPlainMpi) {
    const std::string flags = "--grid 8.4.4.8 --steps 25 --alpha 0.12";
    const std::string ours = results(2, flags)["checksum"];
    int compared = 0;
    for (const std::string mpi : {"openmpi", "mpich"}) {
        const std::string program = bin + "/heat4d_mpi." + mpi;
        if (!std::filesystem::exists(program) || run_command("which mpirun." + mpi).exit_code != 0) continue;
        for (const char* ranks : {"1", "2", "4"}) {
            const command_result theirs =
                run_command("mpirun." + mpi + " -n " + ranks + " " + program + " 8 4 4 8 25 0.12");
            ASSERT_EQ(theirs.exit_code, 0) << theirs.err;
            EXPECT_EQ(nlohmann::json::parse(theirs.out)["checksum"], ours) << mpi << " on " << ranks << " ranks";
        }
        // Our program under the same launcher, over the same MPI.
        const scratch_folder scratch;
        const command_result same = run_command("mpirun." + mpi + " -n 2 " + bin + "/heat4d --transport mpi " + flags +
                                                " --json " + (scratch / "r.json"));
        ASSERT_EQ(same.exit_code, 0) << same.err;
        const auto r = nlohmann::json::parse(read_text(scratch / "r.json"));
        EXPECT_EQ(r["transport"], "mpi");
        EXPECT_EQ(r["checksum"], ours);
        ++compared;
    }
    if (compared == 0) GTEST_SKIP() << "no MPI here";
}

TEST(Heat4d, PlainMpiRefusesWhatIsNoNumber) {
    const std::pair<const char*, const char*> cases[] = {
        {"4 4 4 x 5 0.1", "extent 'x': expected a whole number from 1"},
        {"4 4 0 4 5 0.1", "extent '0': expected"},
        {"4 4 4 2147483647 5 0.1", "extent '2147483647': expected"},
        {"500000 500000 500000 500000 5 0.1", "the lattice is too large"},
        {"4 4 4 3.5 5 0.1", "extent '3.5': expected"},
        {"4 4 4 4 5x 0.1", "STEPS '5x': expected a whole number >= 0"},
        {"4 4 4 4 -1 0.1", "STEPS '-1': expected"},
        {"4 4 4 4 5 nan", "ALPHA 'nan': expected a number from 0 to 0.125"},
        {"4 4 4 4 5 0.13", "ALPHA '0.13': expected a number from 0 to 0.125"},
        {"4 4 4 4 5 -0.1", "ALPHA '-0.1': expected"},
        {"4 4 4 4 5 ''", "ALPHA '': expected"},
        {"4 4 4 4 5", "5 arguments; usage: heat4d_mpi X Y Z T STEPS"}};
    int tested = 0;
    for (const std::string mpi : {"openmpi", "mpich"}) {
        const std::string program = bin + "/heat4d_mpi." + mpi;
        if (!std::filesystem::exists(program) || run_command("which mpirun." + mpi).exit_code != 0) continue;
        const std::string launch = "mpirun." + mpi + " -n 2 " + program + " ";
        for (const auto& [arguments, message] : cases) {
            const command_result r = run_command(launch + arguments);

            EXPECT_EQ(r.exit_code, 2) << arguments << r.err;
            EXPECT_NE(r.err.find("heat4d_mpi: error: " + std::string(message)), std::string::npos)
                << arguments << r.err;
        }
        const command_result help = run_command(launch + "--help");
        EXPECT_EQ(help.exit_code, 0) << help.err;
        EXPECT_EQ(help.out.find("usage: heat4d_mpi X Y Z T STEPS ALPHA\n"), 0U) << help.out;
        ++tested;
    }
    if (tested == 0) GTEST_SKIP() << "no MPI here";
}

TEST(Heat4d, BadInputIsOneMessageAndExitCodeTwo) {
    const struct {
        const char* flags;
        const char* message;
    } cases[] = {{"--grid 4.4.4", "--grid '4.4.4'"},
                 {"--mpi 3.1.1.1", "--mpi 3.1.1.1 needs 3 ranks, but the job has 2"},
                 {"--mpi 65536.65536.65536.65536", "needs more than 2147483647 ranks, but the job has 2"},
                 {"--grid 1.1.1.1", "can't be cut over 2 ranks"},
                 {"--alpha 0.2", "--alpha '0.2': expected"},
                 {"--alpha nan", "--alpha 'nan': expected"},
                 {"--steps 1 --steps 2", "--steps is given once"},
                 {"--transport mock", "unlike mock"},
                 {"--steps -1", "--steps"},
                 {"--grid 4.4.4.4 --json /nowhere/r.json", "/nowhere/r.json"}};
    for (const auto& c : cases) {
        const command_result r = heat(2, c.flags);
        EXPECT_EQ(r.exit_code, 2) << c.flags << ": " << r.err;
        const std::size_t found = r.err.find(c.message);
        EXPECT_NE(found, std::string::npos) << c.flags << ": " << r.err;
        EXPECT_EQ(r.err.find(c.message, found + 1), std::string::npos) << r.err;
    }
}

// The code shown in the documents is the code that is compiled and tested.
TEST(Heat4d, DocumentsShowTheCodeThatRuns) {
    const std::string ours = passage("apps/heat4d/diffuse.cpp", "lattice::field<double> diffuse", "}");
    const std::string steps = passage("apps/heat4d/diffuse.cpp", "    for (int n = 0; n < steps; ++n) {", "    }");
    const std::string theirs = passage("apps/heat4d/heat4d_mpi.cpp", "    // Two arrays take turns", "    }");
    const std::string their_steps =
        passage("apps/heat4d/heat4d_mpi.cpp", "    for (int n = 0; n < steps; ++n) {", "    }");

    expect_page_shows("README.md", {ours});
    expect_page_shows("docs/porting-from-mpi.md", {steps, theirs, their_steps});
}
