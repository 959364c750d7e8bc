// SPDX-License-Identifier: Apache-2.0
// generate_gauge from outside, as a user starts it.
#include <halocline/lattice/gauge_file.hpp>
#include <halocline_test/run_command.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sstream>
#include <string>

namespace {

using namespace halocline;
using halocline_test::command_result;
using halocline_test::read_text;
using halocline_test::run_command;
using halocline_test::scratch_folder;

class GenerateGauge : public testing::Test {
  protected:
    [[nodiscard]] std::string path(const std::string& name) const { return scratch_ / name; }
    [[nodiscard]] std::string content(const std::string& name) const { return read_text(path(name)); }
    [[nodiscard]] static command_result run(int ranks, const std::string& flags) {
        const std::string bin = HALOCLINE_BIN;
        const std::string launcher = ranks > 1 ? bin + "/halocline-run -n " + std::to_string(ranks) + " -- " : "";
        return run_command(launcher + bin + "/generate_gauge " + flags);
    }
    static void expect_success(int ranks, const std::string& flags) {
        const command_result r = run(ranks, flags);
        EXPECT_EQ(r.exit_code, 0) << r.err;
    }

  private:
    scratch_folder scratch_;
};

int lines_with(const std::string& text, const std::string& all) {
    std::istringstream in(all);
    int count = 0;
    for (std::string line; std::getline(in, line);) count += line.find(text) != std::string::npos;
    return count;
}

TEST_F(GenerateGauge, WritesTheSameBytesOnEveryNumberOfRanks) {
    const std::string chain = "--grid 4.4.2.6 --start hot --seed 9 --thermalisation 2 --sweeps 1 --output ";

    expect_success(1, chain + path("one"));
    expect_success(2, chain + path("two"));
    expect_success(4, chain + path("four") + " --mpi 2.2.1.1");

    EXPECT_EQ(content("one").size(), 24 + 576 * 4 * 4 * 2 * 6U);
    EXPECT_EQ(content("one"), content("two"));
    EXPECT_EQ(content("one"), content("four"));
}

TEST_F(GenerateGauge, ResultsAndFilesAgree) {
    expect_success(
        2, "--grid 4.4.4.4 --beta 5.7 --thermalisation 5 --sweeps 64 --measure-every 2 --format ildg --output " +
               path("links.ildg") + " --json " + path("results.json"));

    const auto results = nlohmann::json::parse(content("results.json"));
    const auto file = lattice::open_gauge_file(path("links.ildg"));
    EXPECT_EQ(file.format, lattice::gauge_format::ildg);
    EXPECT_EQ(file.extents, (lattice::coordinate{4, 4, 4, 4}));
    EXPECT_TRUE(file.scidac_checksum.has_value());
    EXPECT_EQ(results["measurements"], 32);
    EXPECT_EQ(results["measure_every"], 2);
    EXPECT_TRUE(results["bin"] == 1 || results["bin"] == 2) << results["bin"];
    EXPECT_EQ(results["ranks"], 2);
    EXPECT_GT(results["plaquette"], 0.45);
    EXPECT_GT(results["plaquette_error"], 0);
    EXPECT_GT(results["last_plaquette"], 0.45);
}

TEST_F(GenerateGauge, FewMeasurementsHaveNoError) {
    const std::string chain = "--grid 2.2.2.2 --thermalisation 0 --sweeps 31 --json " + path("few.json");
    const command_result r = run(1, chain);

    const auto few = nlohmann::json::parse(content("few.json"));
    EXPECT_EQ(few["measurements"], 31);
    EXPECT_TRUE(few["plaquette_error"].is_null()) << few["plaquette_error"];
    EXPECT_TRUE(few["plaquette"].is_number());
    EXPECT_EQ(lines_with("error unknown (31 measurements)", r.out), 1) << r.out;
}

TEST_F(GenerateGauge, BadInputIsOneMessageAndExitCodeTwo) {
    const struct {
        const char* flags;
        const char* message;
    } cases[] = {
        {"--grid 4.4.3.4", "extent 3 in z"},
        {"--grid 4.4.4", "--grid '4.4.4'"},
        {"--grid 4.4.4.4 --mpi 3.1.1.1", "--mpi 3.1.1.1 needs 3 ranks, but the job has 2"},
        {"--grid 4.4.4.4 --mpi 65536.65536.65536.65536", "needs more than 2147483647 ranks, but the job has 2"},
        {"--grid 4.4.4.4 --beta -1", "--beta '-1': expected a coupling"},
        {"--grid 4.4.4.4 --seed -1", "--seed '-1': expected a whole number"},
        {"--grid 4.4.4.4 --seed=", "--seed needs a value"},
        {"--grid 4.4.4.4 --thermalisation 2147483647 --sweeps 1", "--thermalisation '2147483647': expected"},
        {"--grid 4.4.4.4 --thermalisation 536870912 --sweeps 1", "--thermalisation '536870912': expected"},
        {"--grid 4.4.4.4 --thermalisation 500000000 --sweeps 500000000", "are more than 536870911 together"},
        {"--grid 4.4.4.4 --sweep 3", "--sweep"},
        {"--grid 4.4.4.4 --format milc", "milc"},
        {"--grid 4.4.4.4 --thermalisation 0 --sweeps 1 --output /nowhere/links", "/nowhere/links"},
        {"--grid 4.4.4.4 --thermalisation 0 --sweeps 1 --output same --json ./same", "is the file of --json"},
    };
    for (const auto& c : cases) {
        const command_result r = run(2, c.flags);
        EXPECT_EQ(r.exit_code, 2) << c.flags;
        EXPECT_EQ(lines_with(c.message, r.err), 1) << c.flags << ": " << r.err;
    }
}

TEST_F(GenerateGauge, HelpIsPrintedOnce) {
    const command_result r = run(2, "--help");

    EXPECT_EQ(r.exit_code, 0);
    EXPECT_EQ(lines_with("--overrelaxation", r.out), 1) << r.out;
}

} // namespace
