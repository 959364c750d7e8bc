// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"
#include "recurrence.hpp"
#include "smooth_configuration.hpp"

#include <cstddef>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <sstream>
#include <vector>

namespace coarse_solve_test {
namespace {

TEST(Demo, IterationsAndSolutionDoNotDependOnRanks) {
    const json one = solve(ranks(1), "");
    ASSERT_TRUE(one["converged"]);
    EXPECT_EQ(one["transport"], "self");
    EXPECT_EQ(one.value("coarse_halo", json()), json::array()); // there, and empty
    EXPECT_LE(double(one["true_relative_residual"]), 1e-10);
    EXPECT_GT(double(one["coarse_iterations_average"]), 1);

    for (const int n : {2, 4}) {
        const json many = solve(ranks(n), "");
        EXPECT_TRUE(many["converged"]);
        EXPECT_EQ(many["ranks"], n);
        EXPECT_EQ(many["transport"], "shm");
        EXPECT_EQ(many["outer_iterations"], one["outer_iterations"]);
        expect_same_solution(many, one, 1e-8);
    }
}

TEST(Demo, UnevenCutOfSmallBlocks) {
    const json three = solve(ranks(3), "--blocks 2.2.2.2 --setup 1 --vectors 12");
    const json one = solve(ranks(1), "--blocks 2.2.2.2 --setup 1 --vectors 12");

    EXPECT_TRUE(three["converged"]);
    EXPECT_EQ(three["rank_grid"], json({1, 1, 1, 3}));
    EXPECT_EQ(three["outer_iterations"], one["outer_iterations"]);
    expect_same_solution(three, one, 1e-8);
}

TEST(Demo, TightToleranceAgreesToTenDigitsOnAnyRankGrid) {
    const json one = solve(ranks(1), "--tol 1e-13");
    for (const char* grid : {"2.1.1.1", "1.1.2.1"}) {
        const json two = solve(ranks(2), std::string("--tol 1e-13 --mpi ") + grid);
        EXPECT_TRUE(two["converged"]);
        expect_same_solution(two, one, 1e-10);
    }
}

/// The two operators round differently there.
TEST(Demo, AtTolerancesNearTheLastDigitTheCheckAgreesWithTheSolver) {
    int met = 0;
    for (const std::string tolerance : {"1.7e-16", "2e-16", "2.3e-16", "2.8e-16", "1e-15"}) {
        const scratch_folder scratch;
        const std::string file = scratch / "result.json";
        const command_result run =
            run_command(on_ranks(1, "--m0 0.1 --rhs random --setup 1 --vectors 8 --max-iterations 40 --tol " +
                                        tolerance + " --json " + file));

        const json result = json::parse(halocline_test::read_text(file));
        EXPECT_NE(result["status"], "contradicted") << run.out;
        EXPECT_EQ(result["converged"], result["status"] == "converged") << run.out;
        EXPECT_EQ(run.exit_code, result["converged"] ? 0 : 1);
        met += result["converged"] ? 1 : 0;
    }
    EXPECT_GE(met, 1) << "nothing was checked";
}

TEST(Demo, NotConvergedIsExitCodeOneAndStillWritesJson) {
    const json result = solve(ranks(2), "--max-iterations 2", 1);

    EXPECT_FALSE(result["converged"]);
    EXPECT_EQ(result["outer_iterations"], 2);
    EXPECT_GT(double(result["true_relative_residual"]), 1e-10);
}

/// With a tolerance beyond the last digit, which no solve reaches.
TEST(Demo, KeysOfTheSolverAndItsSmootherAreInForce) {
    const scratch_folder scratch;
    const std::string gauge = scratch / "4444.ildg";
    write_smooth(gauge, {4, 4, 4, 4});
    const auto with = [&](const std::string& keys) {
        return solve([&](const std::string& a) { return "env " + keys + " " + on_ranks(1, a); },
                     "--m0 0.1 --blocks 2.2.2.2 --setup 0 --vectors 4 --tol 1e-200 --gauge " + gauge, 1);
    };
    const std::string short_cycles = "HALOCLINE_SOLVER_RESTART_LENGTH=2 ", two = "HALOCLINE_SOLVER_MAX_RESTARTS=2 ";

    const json plain = with(short_cycles + two), more = with(short_cycles + "HALOCLINE_SOLVER_MAX_RESTARTS=3"),
               swept = with(short_cycles + two + "HALOCLINE_LEVEL_0_SWEEPS=4"),
               stepped = with(short_cycles + two + "HALOCLINE_LEVEL_0_BLOCK_STEPS=1"),
               stopped = with("HALOCLINE_SOLVER_RESTART_LENGTH=20 HALOCLINE_SOLVER_STAGNATION_STOP=true");

    EXPECT_EQ(plain["outer_iterations"], 4);
    EXPECT_EQ(plain["status"], "max_iterations");
    EXPECT_EQ(more["outer_iterations"], 6);
    EXPECT_LT(double(swept["true_relative_residual"]), double(plain["true_relative_residual"]));
    EXPECT_GT(double(stepped["true_relative_residual"]), double(plain["true_relative_residual"]));
    EXPECT_EQ(stopped["status"], "stagnated");
}

TEST(Demo, SaysThatATightToleranceMayBeOutOfReach) {
    const std::string quick = "--max-iterations 1 --setup 0 --vectors 4 --tol ";

    const auto near = run_command(on_ranks(1, quick + "9e-16")), far = run_command(on_ranks(1, quick + "1e-15"));

    EXPECT_NE(near.out.find("note: --tol 9e-16 is near the rounding of doubles"), std::string::npos) << near.out;
    EXPECT_EQ(far.out.find("the rounding of doubles"), std::string::npos) << far.out;
}

TEST(Demo, JsonHasTheSettingsInForce) {
    const json result = solve(ranks(2), "--max-iterations 2 --setup 0 --vectors 4 --seed 7 --m0 -0.25", 1);

    const json& settings = result["settings"];
    EXPECT_EQ(result["version"], HALOCLINE_VERSION);
    EXPECT_EQ(settings["operator.m0"], "-0.25");
    EXPECT_EQ(settings["operator.boundary"], "periodic,periodic,periodic,antiperiodic");
    EXPECT_EQ(settings["solver.seed"], "7");
    EXPECT_EQ(settings["solver.tolerance"], "1e-10");
    EXPECT_EQ(settings["level.0.vectors"], "4");
    EXPECT_EQ(settings["level.1.restart_length"], "100");
    EXPECT_EQ(settings["lattice.grid"], "8.8.8.8") << "chosen";
    EXPECT_EQ(settings["lattice.mpi"], "1.1.1.2") << "chosen";
    EXPECT_EQ(settings["level.0.blocks"], "4.4.4.4") << "chosen";
    EXPECT_FALSE(settings.contains("comm.network")) << "of a host";
}

/// The smoother divides by 1e-12.
TEST(Demo, ParametersThatAllowNoHierarchyAreAResult) {
    const scratch_folder scratch;
    const std::string gauge = scratch / "4444.ildg", x = scratch / "x.lime";
    write_smooth(gauge, {4, 4, 4, 4});

    const json result =
        solve(ranks(2), "--vectors 6 --m0 -3.999999999999 --csw 0 --gauge " + gauge + " --solution " + x, 1);

    EXPECT_EQ(result["status"], "no_hierarchy");
    EXPECT_FALSE(result["converged"]);
    EXPECT_EQ(result["true_relative_residual"], 1);
    EXPECT_EQ(result["outer_iterations"], 0);
    ASSERT_EQ(result["notes"].size(), 1U);
    const std::string why = result["notes"][0];
    EXPECT_NE(why.find("what they should be? (m0 = -3.999999999999, csw = 0)"), std::string::npos) << why;
    EXPECT_EQ(result["solution"], "");
    EXPECT_FALSE(std::filesystem::exists(x));
}

/// As above, but exactly: the operator itself can't be made.
TEST(Demo, ASiteLocalTermThatIsSingularIsAResult) {
    const scratch_folder scratch;
    const std::string gauge = scratch / "4444.ildg";
    write_smooth(gauge, {4, 4, 4, 4});
    for (const int n : {1, 2}) {
        const json result = solve(ranks(n), "--vectors 6 --m0 -4 --csw 0 --gauge " + gauge, 1);

        EXPECT_EQ(result["status"], "no_hierarchy");
        EXPECT_FALSE(result["converged"]);
        EXPECT_EQ(result["true_relative_residual"], 1);
        const std::string why = result["notes"][0];
        EXPECT_EQ(why.find("the site-local term (4 + m0 + clover) is singular at site "), 0U) << why;
        EXPECT_NE(why.find("(m0 = -4, csw = 0)"), std::string::npos) << why;
    }
}

TEST(Demo, ItsOwnConfigurationIfDamagedIsToldWithWhatToDo) {
    const scratch_folder scratch;
    const std::string file = scratch / "demo-8.8.8.8-beta6.0.ildg";
    write_smooth(file, {8, 8, 8, 8});
    std::string bytes = halocline_test::read_text(file);
    const std::string whole = bytes;
    bytes[bytes.size() / 2] ^= 1;
    for (const std::string& damaged : {bytes, whole.substr(0, whole.size() / 2)}) {
        std::ofstream(file, std::ios::binary) << damaged;

        const auto run = run_command("env HALOCLINE_DATA_DIR=" + (scratch / "") + " " + on_ranks(2, "--vectors 4"));

        EXPECT_EQ(run.exit_code, 2) << run.out;
        EXPECT_NE(run.err.find("'" + file + "': "), std::string::npos) << run.err;
        EXPECT_NE(run.err.find("; it is the demo configuration: remove it, and it is made anew"), std::string::npos)
            << run.err;
    }
}

TEST(Demo, LinksThatWereRoundedTo32BitsAreSolvedOnIfAskedFor) {
    const scratch_folder scratch;
    const std::string gauge = scratch / "rounded";
    const auto made =
        run_command(bin + "/generate_gauge --grid 4.4.4.4 --thermalisation 2 --sweeps 0 --output " + gauge);
    ASSERT_EQ(made.exit_code, 0) << made.err;
    std::string bytes = halocline_test::read_text(gauge);
    constexpr std::size_t head = 24;
    for (std::size_t at = head; at + sizeof(double) <= bytes.size(); at += sizeof(double)) {
        double value = 0;
        std::memcpy(&value, &bytes[at], sizeof value);
        value = static_cast<float>(value);
        std::memcpy(&bytes[at], &value, sizeof value);
    }
    std::ofstream(gauge, std::ios::binary) << bytes;
    const std::string arguments = "--m0 0.1 --setup 1 --vectors 8 --gauge " + gauge;

    const auto refused = run_command(on_ranks(2, arguments)),
               solved = run_command(on_ranks(2, "--reunitarise " + arguments));
    for (const char* off : {"--reunitarise=false ", "--reunitarise=no "}) {
        const auto still_refused = run_command(on_ranks(2, off + arguments));
        EXPECT_EQ(still_refused.exit_code, 2) << off << still_refused.out;
    }

    EXPECT_EQ(refused.exit_code, 2) << refused.out;
    EXPECT_NE(refused.err.find("a link misses SU(3) by "), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("--reunitarise accepts rounded links"), std::string::npos) << refused.err;
    EXPECT_EQ(solved.exit_code, 0) << solved.err;
    EXPECT_NE(solved.out.find("its links missed SU(3) by at most "), std::string::npos) << solved.out;
}

/// With numbers as a singular operator gives them, which no solve is sure to.
TEST(Demo, AResidualFarAboveTheLastOfTheHistoryIsNoted) {
    const auto note = [](std::initializer_list<double> history, double residual) {
        return halocline::app::note_on_recurrence(std::vector(history), residual);
    };

    EXPECT_EQ(note({1, 1e-3, 2e-9}, 5e-7), "the true relative residual, 5.000e-07, is 250 times the last one of the "
                                           "history, 2.000e-09: rounding has taken over the solver's recurrence, as it "
                                           "does if D is singular");
    EXPECT_NE(note({1, 1e-9}, 2.1e-9), "");
    EXPECT_EQ(note({1, 1e-9}, 1.9e-9), "");
    EXPECT_EQ(note({1, 0}, 1e-9), "") << "a solution that the recurrence calls exact";
    EXPECT_EQ(note({}, 1), "");
}

/// Links of one, periodic, without a mass: constant fields are mapped to 0.
TEST(Demo, ASingularSystemIsNotedWhereTheRecurrenceDoesNotShowIt) {
    const scratch_folder scratch;
    const std::string gauge = scratch / "cold";
    const auto made = run_command(bin + "/generate_gauge --grid 4.4.4.4 --start cold --thermalisation 0 --sweeps 0 " +
                                  "--output " + gauge);
    ASSERT_EQ(made.exit_code, 0) << made.err;
    const auto periodic = [](const std::string& arguments) {
        return "env HALOCLINE_OPERATOR_BOUNDARY=periodic,periodic,periodic,periodic " + on_ranks(2, arguments);
    };

    const json singular = solve(periodic, "--m0 0 --blocks 2.2.2.2 --rhs unit --max-iterations 60 --gauge " + gauge, 1);
    const json regular = solve(periodic, "--m0 0.1 --blocks 2.2.2.2 --rhs unit --gauge " + gauge);

    for (const json& result : {singular, regular}) { // how far they are apart is for rounding to decide
        const bool contradicted = double(result["true_relative_residual"]) > 2 * double(result["history"].back());
        const bool noted = result["notes"].dump().find(" times the last one of the history, ") != std::string::npos;
        EXPECT_EQ(noted, contradicted) << result;
    }
}

TEST(Demo, RandomAndUnitRightHandSidesDoNotDependOnRanks) {
    for (const char* rhs : {"random --seed 5", "unit"}) {
        const json one = solve(ranks(1), std::string("--rhs ") + rhs);
        const json two = solve(ranks(2), std::string("--rhs ") + rhs);
        EXPECT_NEAR(one["rhs_norm"], two["rhs_norm"], 1e-12 * double(one["rhs_norm"]));
        expect_same_solution(two, one, 1e-8);
    }
}

TEST(Demo, ConfigurationOfTwoJobsAtOnceAfterAKilledOneIsOneFile) {
    const scratch_folder scratch;
    const std::string file = scratch / "demo-8.8.8.8-beta6.0.ildg";
    std::ofstream(file + ".partial") << "half a configuration";
    const std::string job = "HALOCLINE_DATA_DIR=" + file.substr(0, file.rfind('/')) + " " +
                            on_ranks(1, "--setup 0 --vectors 4 --max-iterations 1");

    const auto run = run_command("sh -c '" + job + " & " + job + " & wait $!; wait'");

    EXPECT_EQ(run.err, "");
    EXPECT_NE(run.out.find("warning: '" + file + ".partial' is there"), std::string::npos) << run.out;
    const std::string twice = "read ILDG '" + file + "'";
    EXPECT_NE(run.out.find(twice), run.out.rfind(twice)) << run.out;
    std::filesystem::remove(file);
    EXPECT_TRUE(std::filesystem::is_empty(std::filesystem::path(file).parent_path())) << "more than the configuration";
}

TEST(Demo, DryRunPrintsTheCutAndStops) {
    const scratch_folder scratch;

    const auto run = run_command("env HALOCLINE_DATA_DIR=" + (scratch / "") + " " +
                                 on_ranks(4, "--dry-run --json not-written.json"));

    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_TRUE(std::filesystem::is_empty(scratch / "")) << "the demo configuration was made";
    EXPECT_NE(run.out.find("lattice        8.8.8.8 (4096 sites), the demo configuration\n"), std::string::npos)
        << run.out;
    EXPECT_NE(run.out.find("--dry-run writes nothing to 'not-written.json'"), std::string::npos) << run.out;
    EXPECT_FALSE(std::filesystem::exists("not-written.json"));
    EXPECT_NE(run.out.find("rank grid      1.1.2.2"), std::string::npos) << run.out;
    EXPECT_EQ(run.out.find("outer iterations"), std::string::npos);
}

// Between two ranks of 8.8.8.2 sites lie 512, at 96 bytes: 48 KiB each way. Dealt to the nodes alternately, in
// lexicographic order all four pairs cross.
TEST(Demo, PlacesItsRanksByNodesUnlessToldOtherwise) {
    const auto ordered = [](const std::string& order) {
        return [order](const std::string& arguments) {
            return bin + "/halocline-run -n 4 -- sh -c 'HALOCLINE_NODE=$((HALOCLINE_RANK % 2)) " +
                   "HALOCLINE_LATTICE_RANK_ORDER=" + order + " exec " + bin + "/coarse_solve --mpi 1.1.1.4 " +
                   "--blocks 2.2.2.2 " + arguments + "'";
        };
    };
    const auto by_nodes = run_command(ordered("nodes")("--dry-run")),
               lexicographic = run_command(ordered("lexicographic")("--dry-run"));
    if (by_nodes.err.find("no transport") != std::string::npos)
        GTEST_SKIP() << "nothing that joins nodes: " << by_nodes.err;
    const auto usual = run_command(bin + "/halocline-run -n 4 -- sh -c 'HALOCLINE_NODE=$((HALOCLINE_RANK % 2)) exec " +
                                   bin + "/coarse_solve --mpi 1.1.1.4 --blocks 2.2.2.2 --dry-run'");

    EXPECT_NE(by_nodes.out.find("rank order     by nodes; of a fine exchange 192.0 KiB travel between the 2 nodes "
                                "(lexicographic order: 384.0, by nodes: 192.0)\n"),
              std::string::npos)
        << by_nodes.out << by_nodes.err;
    EXPECT_NE(lexicographic.out.find("rank order     lexicographic over the rank grid, x fastest; of a fine exchange "
                                     "384.0 KiB travel between the 2 nodes"),
              std::string::npos)
        << lexicographic.out << lexicographic.err;
    EXPECT_EQ(usual.out, by_nodes.out);

    const std::string quick = "--setup 0 --vectors 4 --max-iterations 3";
    const json dealt = solve(ordered("nodes"), quick, 1);
    EXPECT_NE(dealt["transport"], "shm");
    expect_same_bits(dealt, solve(ordered("lexicographic"), quick, 1), "in another order of the ranks");
}

/// KiB that rank 0 sends in a coarse exchange, the last column of its row.
double coarse_kibibytes_of_rank_0(const std::string& dry_run) {
    std::istringstream lines(dry_run);
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with("   0 ")) return std::stod(line.substr(line.rfind(' ')));
    return -1;
}

// A coarse site takes 2 * 28 complex numbers in fp32, and the face between the ranks has 2.2.2.1 of them.
TEST(Demo, DryRunCountsOneCoarseFaceWhereBothNeighboursAreOneSite) {
    const auto two_wide = run_command(on_ranks(2, "--dry-run --mpi 1.1.1.2")),
               wider = run_command(on_ranks(2, "--dry-run --mpi 1.1.1.2 --grid 8.8.8.16"));

    EXPECT_DOUBLE_EQ(coarse_kibibytes_of_rank_0(two_wide.out), 3.5) << two_wide.out << two_wide.err;
    EXPECT_DOUBLE_EQ(coarse_kibibytes_of_rank_0(wider.out), 7) << wider.out << wider.err;
}

TEST(Demo, JsonToADeviceLeavesTheDeviceThere) {
    const auto run = run_command(on_ranks(1, "--max-iterations 1 --setup 0 --vectors 4 --json /dev/stdout"));

    EXPECT_EQ(run.exit_code, 1) << run.err;
    EXPECT_NE(run.out.find("\"true_relative_residual\""), std::string::npos) << run.out;
    EXPECT_TRUE(std::filesystem::is_symlink("/dev/stdout"));
}

} // namespace
} // namespace coarse_solve_test
