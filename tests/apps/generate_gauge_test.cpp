// SPDX-License-Identifier: Apache-2.0
// generate_gauge from outside, as a user starts it.
#include "openqcd_format.hpp"

#include <halocline/lattice/gauge_file.hpp>
#include <halocline_test/contains.hpp>
#include <halocline_test/run_command.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <bit>
#include <complex>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace halocline;
using halocline_test::command_result;
using halocline_test::contains;
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

TEST_F(GenerateGauge, AChainGoesOnFromAFileWithTheSameBits) {
    const std::string chain = "--seed 9 --beta 5.7 --overrelaxation 2 ";
    expect_success(1, chain + "--grid 4.4.2.6 --start hot --thermalisation 2 --sweeps 5 --output " + path("whole"));
    for (const std::string format : {"ddalphaamg", "ildg", "nersc"}) {
        const std::string part = path("part." + format);
        expect_success(1, chain + "--grid 4.4.2.6 --start hot --thermalisation 2 --sweeps 1 --output " + part +
                              " --format " + format);
        const std::string rest = chain + "--start file:" + part + " --sweeps 4 --output " + path("rest");

        for (const auto& [ranks, cut] : std::vector<std::pair<int, std::string>>{
                 {1, "1.1.1.1"}, {2, "1.1.1.2"}, {2, "2.1.1.1"}, {3, "1.1.1.3"}, {4, "2.2.1.1"}}) {
            expect_success(ranks, rest + " --sweeps-done 3 --mpi " + cut + " --json " + path("rest.json"));

            EXPECT_TRUE(content("rest") == content("whole")) << format << " on " << cut;
            EXPECT_EQ(nlohmann::json::parse(content("rest.json"))["sweeps_done"], 7);
        }

        if (format == "ddalphaamg") { // the others say which sweeps led to them
            expect_success(1, rest + " --sweeps-done 2");
            EXPECT_FALSE(content("rest") == content("whole")) << "with the random numbers of other sweeps";
        }
        expect_success(1, rest + " --sweeps-done 3 --thermalisation 1");
        EXPECT_FALSE(content("rest") == content("whole")) << "one sweep more";
    }
}

TEST_F(GenerateGauge, FilesOfAnotherChainAreRefused) {
    for (const std::string format : {"ildg", "nersc"}) {
        const std::string file = path("x." + format);
        expect_success(1, "--grid 4.4.2.2 --beta 5.7 --seed 9 --thermalisation 1 --sweeps 2 --output " + file +
                              " --format " + format);
        const auto refused = [&](const std::string& flags) {
            const command_result r = run(2, "--start file:" + file + " --sweeps 0 " + flags);
            EXPECT_EQ(r.exit_code, 2) << flags;
            return r.err;
        };
        const std::string chain = "the file is of the chain 'beta 5.7, seed 9, overrelaxation 4, sweeps 3', ";

        for (const auto& [flags, said] : std::vector<std::pair<std::string, std::string>>{
                 {"--beta 5.8 --seed 9 --sweeps-done 3", "beta 5.8, seed 9, overrelaxation 4, sweeps 3"},
                 {"--beta 5.7 --seed 8 --sweeps-done 3", "beta 5.7, seed 8, overrelaxation 4, sweeps 3"},
                 {"--beta 5.7 --seed 9 --sweeps-done 2", "beta 5.7, seed 9, overrelaxation 4, sweeps 2"},
                 {"--beta 5.7 --seed 9 --sweeps-done 3 --overrelaxation 3",
                  "beta 5.7, seed 9, overrelaxation 3, sweeps 3"}}) {
            const std::string text = refused(flags);
            EXPECT_EQ(lines_with(chain + "the flags say '" + said + "'", text), 1) << text;
        }
        const std::string again = refused("--beta 5.8 --seed 9");
        EXPECT_EQ(lines_with(chain + "so random numbers of --seed 9 were used", again), 1) << again;
        expect_success(2, "--start file:" + file + " --sweeps 1 --beta 5.8 --seed 19");
        expect_success(2, "--start file:" + file + " --sweeps 1 --beta 5.7 --seed 9 --sweeps-done 3");
    }
}

TEST_F(GenerateGauge, ConfigurationsAreSavedWhileTheChainRuns) {
    const std::string chain = "--grid 4.4.2.2 --seed 9 --thermalisation 2 --sweeps ";
    expect_success(1, chain + "3 --output " + path("three"));

    expect_success(2, chain + "7 --save-every 3 --output " + path("x") + " --json " + path("r.json"));
    expect_success(2, "--seed 9 --start file:" + path("x.0008") +
                          " --sweeps-done 8 --sweeps 1 --save-every 1 --output " + path("y"));

    EXPECT_TRUE(content("x.0005") == content("three")) << "thermalisation and three sweeps";
    EXPECT_TRUE(content("y.0009") == content("x")) << "the last links, after nine sweeps";
    EXPECT_TRUE(content("y.0009") == content("y"));
    const auto result = nlohmann::json::parse(content("r.json"));
    EXPECT_EQ(result["saved"], nlohmann::json({path("x.0005"), path("x.0008")}));
    EXPECT_EQ(result["save_every"], 3);
    EXPECT_EQ(result["output"], path("x"));
    EXPECT_FALSE(std::filesystem::exists(path("x.0009")));
}

TEST_F(GenerateGauge, SavedConfigurationsTakeNoOtherFilesPlace) {
    const std::string chain = "--grid 2.2.2.2 --thermalisation 0 --sweeps 4 --save-every 2 --output " + path("x");
    std::filesystem::create_directory(path("x.0004"));

    const command_result json = run(2, chain + " --json " + path("x.0002")), folder = run(2, chain);
    std::filesystem::remove(path("x.0004"));
    std::ofstream(path("x.0004")) << "to be kept";
    std::filesystem::permissions(path("x.0004"), std::filesystem::perms::owner_read);
    const command_result to_keep = run(2, chain);
    std::ofstream(path("x.0002.partial")) << "left";
    std::filesystem::remove(path("x.0004"));
    std::ofstream(path("x.0004.partial")) << "left";
    const command_result left = run(2, chain);

    EXPECT_EQ(json.exit_code, 2);
    EXPECT_EQ(lines_with("--save-every " + path("x.0002") + ": is the file of --json", json.err), 1) << json.err;
    EXPECT_EQ(folder.exit_code, 2);
    EXPECT_EQ(lines_with("--save-every " + path("x.0004") + ": can't be written: it is a folder", folder.err), 1)
        << folder.err;
    EXPECT_EQ(to_keep.exit_code, 2);
    EXPECT_EQ(lines_with("--save-every " + path("x.0004") + ": can't be written: it is write-protected", to_keep.err),
              1)
        << to_keep.err;
    EXPECT_EQ(left.exit_code, 0) << left.err;
    for (const std::string name : {"x.0002", "x.0004"})
        EXPECT_EQ(lines_with("warning: '" + path(name + ".partial") + "' is there", left.out + left.err), 1)
            << left.out << left.err;
}

/// A pipe that is not read holds back the chain long before its last sweep: it has a line for each file.
TEST_F(GenerateGauge, ASavedConfigurationThatCannotBeWrittenIsToldAtOnce) {
    const std::string folder = path(std::string(200, 'a'));
    std::filesystem::create_directory(folder);
    const std::string bin = HALOCLINE_BIN, file = folder + "/x";
    const command_result r =
        run_command("bash -c '{ " + bin +
                    "/generate_gauge --grid 2.2.2.2 --thermalisation 0 --sweeps 600 --save-every 1 --output " + file +
                    "; echo code $?; } | { read line; mkdir " + file + ".0599.partial; cat; }'");

    const std::size_t warned = r.out.find("\nwarning: --save-every: '" + file + ".0599"),
                      next = r.out.find("\nwrote " + file + ".0600 ");
    EXPECT_LT(warned, next) << r.out;
    EXPECT_NE(next, std::string::npos) << r.out;
    EXPECT_TRUE(contains(r.out, "\ncode 1\n")) << r.out;
    EXPECT_EQ(lines_with("generate_gauge: error: --save-every: '" + file + ".0599", r.err), 1) << r.err;
    EXPECT_FALSE(std::filesystem::exists(file + ".0599"));
}

/// The links of a file of 64 bits are taken as they are; others are as unitary as the chain's only once made so.
TEST_F(GenerateGauge, LinksOf32BitsAreMadeUnitary) {
    expect_success(1, "--grid 4.4.2.2 --thermalisation 2 --sweeps 0 --format nersc --output " + path("64"));
    const std::string file = content("64"), end = "END_HEADER\n";
    const std::size_t data = file.find(end) + end.size();
    std::string head = file.substr(0, data), links;
    head.replace(head.find("IEEE64BIG"), 9, "IEEE32BIG");
    head.replace(head.find("CHECKSUM"), 8, "OLD_SUMS");
    for (std::size_t at = data; at < file.size(); at += sizeof(double)) {
        std::uint64_t bits = 0;
        for (std::size_t b = 0; b < sizeof bits; ++b) bits = bits << 8 | static_cast<unsigned char>(file[at + b]);
        links += halocline_test::real(std::bit_cast<double>(bits), 4, true);
    }
    std::ofstream(path("32"), std::ios::binary) << head << links;

    const command_result r = run(2, "--start file:" + path("32") + " --seed 2 --sweeps 0 --output " + path("again"));

    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_EQ(lines_with("read NERSC '" + path("32") + "': plaquette ", r.out), 1) << r.out;
    EXPECT_EQ(content("again").size(), 24 + 576 * 4 * 4 * 2 * 2U);
}

TEST_F(GenerateGauge, LinksOf64BitsThatWereRoundedTo32NeedAFlag) {
    expect_success(1, "--grid 4.4.2.2 --thermalisation 2 --sweeps 0 --output " + path("x"));
    std::string file = content("x");
    constexpr std::size_t head = 24;
    for (std::size_t at = head; at + sizeof(double) <= file.size(); at += sizeof(double)) {
        double value = 0;
        std::memcpy(&value, &file[at], sizeof value);
        value = static_cast<float>(value);
        std::memcpy(&file[at], &value, sizeof value);
    }
    std::ofstream(path("x"), std::ios::binary) << file;
    const std::string start = "--start file:" + path("x") + " --seed 2 --sweeps 0 --output " + path("again");

    const command_result refused = run(2, start), taken = run(2, start + " --reunitarise");

    EXPECT_EQ(refused.exit_code, 2) << refused.out;
    EXPECT_EQ(lines_with("--reunitarise accepts rounded links", refused.err), 1) << refused.err;
    EXPECT_EQ(taken.exit_code, 0) << taken.err;
    EXPECT_EQ(lines_with("its links missed SU(3) by at most ", taken.out), 1) << taken.out;
    expect_success(1, "--start file:" + path("again") + " --seed 3 --sweeps 0");
}

TEST_F(GenerateGauge, LinksThatNoPeriodicLatticeHasAreRefused) {
    const lattice::coordinate lattice{4, 4, 4, 4};
    const auto open = [&](std::int64_t site, int mu) {
        const bool last = lattice::lexicographic_coordinate(site, lattice)[3] == lattice[3] - 1;
        const std::complex<double> one = last && mu == 3 ? 0 : 1;
        return halocline_test::matrix{one, 0, 0, 0, one, 0, 0, 0, one};
    };
    const double without_last = 1 - 0.5 / lattice[3]; // of the plaquettes there, half are in planes with t
    std::ofstream(path("open"), std::ios::binary) << halocline_test::openqcd(lattice, open, without_last);

    const command_result r = run(2, "--start file:" + path("open") + " --seed 2 --sweeps 1");

    EXPECT_EQ(r.exit_code, 2) << r.out;
    EXPECT_EQ(lines_with("an open boundary; the sweeps are those of a periodic lattice", r.err), 1) << r.err;
}

TEST_F(GenerateGauge, AFileThatDoesNotFitTheOtherFlagsIsRefused) {
    expect_success(1, "--grid 4.4.2.2 --thermalisation 0 --sweeps 0 --output " + path("x"));
    const std::string start = "--start file:" + path("x") + " --sweeps-done 0 ";

    const command_result grid = run(2, start + "--grid 4.4.4.4"), same = run(2, start + "--output " + path("x"));

    EXPECT_EQ(grid.exit_code, 2);
    EXPECT_EQ(lines_with("--grid 4.4.4.4 disagrees with '" + path("x") + "', which holds 4.4.2.2", grid.err), 1)
        << grid.err;
    EXPECT_EQ(same.exit_code, 2);
    EXPECT_EQ(lines_with("is the file of --start, whose place it would take", same.err), 1) << same.err;
    expect_success(2, start + "--sweeps 1 --grid 4.4.2.2");
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
    const std::vector<double> history = results["history"];
    ASSERT_EQ(history.size(), 32);
    EXPECT_NEAR(std::accumulate(history.begin(), history.end(), 0.0) / 32, double(results["plaquette"]), 1e-14);
    EXPECT_EQ(history.back(), results["last_plaquette"]);
    EXPECT_EQ(results["format"], "ildg");
    EXPECT_EQ(results["sweeps_done"], 69);
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

TEST_F(GenerateGauge, OneMeasurementIsPrintedAndNoneIsNull) {
    const std::string chain = "--grid 2.2.2.2 --thermalisation 1 --json ";

    const command_result one = run(1, chain + path("one.json") + " --sweeps 1"),
                         none = run(1, chain + path("none.json") + " --sweeps 0");

    EXPECT_EQ(lines_with("error unknown (1 measurement);", one.out), 1) << one.out;
    EXPECT_TRUE(nlohmann::json::parse(content("one.json"))["plaquette"].is_number());
    EXPECT_FALSE(contains(none.out, "measurement")) << none.out;
    const auto result = nlohmann::json::parse(content("none.json"));
    EXPECT_TRUE(result["plaquette"].is_null()) << result;
    EXPECT_EQ(result["history"], nlohmann::json::array());
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
        {"--grid 4.4.4.4 --format ildg", "--format: needs --output"},
        {"--grid 4.4.4.4 --save-every 2", "--save-every: needs --output"},
        {"--grid 4.4.4.4 --measure-every 100 --sweeps 50", "--measure-every 100: nothing would be measured in 50 sw"},
        {"--grid 4.4.4.4 --measure-every 1 --sweeps 0", "--measure-every 1: nothing would be measured in 0 sweeps"},
        {"--grid 4.4.4.4 --save-every 51 --output x", "--save-every 51: nothing would be saved in 50 sweeps"},
        {"--grid 4.4.4.4 --sweeps 200000002 --save-every 2 --output x",
         "--save-every 2: would write 100000001 files in 200000002 sweeps (--sweeps), and at most 100000 are written"},
        {"--grid 4.4.4.4 --start warm", "--start 'warm': expected cold, hot or file:PATH"},
        {"--grid 4.4.4.4 --start file:", "--start 'file:': expected cold, hot or file:PATH"},
        {"--grid 4.4.4.4 --sweeps-done 3", "--sweeps-done: needs --start file:PATH"},
        {"--grid 4.4.4.4 --reunitarise", "--reunitarise: needs --start file:PATH"},
        {"--start file:/nowhere/x", "--start file:/nowhere/x: give --sweeps-done"},
        {"--start file:/nowhere/x --seed 2", "'/nowhere/x'"},
        {"--start file:/nowhere/x --sweeps-done 536870911",
         "--sweeps-done 536870911, --thermalisation 0 and --sweeps 50"},
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
