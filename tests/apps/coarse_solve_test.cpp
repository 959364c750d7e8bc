// SPDX-License-Identifier: Apache-2.0
// coarse_solve as a user starts it: on 1 to 4 processes, over each transport, with good and bad input, and killed.
#include <halocline/lattice/gauge_file.hpp>
#include <halocline/lattice/random.hpp>
#include <halocline_app/settings.hpp>
#include <halocline_test/reference_data.hpp>
#include <halocline_test/run_command.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <complex>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

namespace {

using halocline_test::command_result;
using halocline_test::run_command;
using halocline_test::scratch_folder;
using nlohmann::json;
using complex = std::complex<double>;

const std::string bin = HALOCLINE_BIN;

std::string on_ranks(int ranks, const std::string& arguments) {
    return bin + "/halocline-run -n " + std::to_string(ranks) + " -- " + bin + "/coarse_solve " + arguments;
}

std::string under_mpi(const std::string& mpirun, int ranks, const std::string& arguments) {
    return "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 " +
           mpirun + " -n " + std::to_string(ranks) + " " + bin + "/coarse_solve " + arguments;
}

bool installed(const std::string& program) { return run_command("sh -c 'command -v " + program + "'").exit_code == 0; }

/// Runs a solve with --json; expects `exit_code`.
json solve(const std::function<std::string(const std::string&)>& launch, const std::string& arguments,
           int exit_code = 0) {
    const scratch_folder scratch;
    const std::string file = scratch / "result.json";
    const command_result run = run_command(launch(arguments + " --json " + file));
    EXPECT_EQ(run.exit_code, exit_code) << run.out << run.err;
    if (!std::filesystem::exists(file)) return {};
    return json::parse(halocline_test::read_text(file));
}

auto ranks(int n) {
    return [n](const std::string& a) { return on_ranks(n, a); };
}

complex number(const json& pair) { return {pair.at(0), pair.at(1)}; }

void expect_same_solution(const json& a, const json& b, double tolerance) {
    EXPECT_NEAR(a["solution_norm"], b["solution_norm"], tolerance * double(b["solution_norm"]));
    for (const char* key : {"solution_sum", "first_component"})
        EXPECT_LE(std::abs(number(a[key]) - number(b[key])), tolerance * std::abs(number(b[key]))) << key;
}

TEST(Demo, IterationsAndSolutionDoNotDependOnRanks) {
    const json one = solve(ranks(1), "");
    ASSERT_TRUE(one["converged"]);
    EXPECT_EQ(one["transport"], "self");
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

TEST(Demo, NotConvergedIsExitCodeOneAndStillWritesJson) {
    const json result = solve(ranks(2), "--max-iterations 2", 1);

    EXPECT_FALSE(result["converged"]);
    EXPECT_EQ(result["outer_iterations"], 2);
    EXPECT_GT(double(result["true_relative_residual"]), 1e-10);
}

TEST(Demo, RandomAndUnitRightHandSidesDoNotDependOnRanks) {
    for (const char* rhs : {"random --seed 5", "unit"}) {
        const json one = solve(ranks(1), std::string("--rhs ") + rhs);
        const json two = solve(ranks(2), std::string("--rhs ") + rhs);
        EXPECT_NEAR(one["rhs_norm"], two["rhs_norm"], 1e-12 * double(one["rhs_norm"]));
        expect_same_solution(two, one, 1e-8);
    }
}

TEST(Demo, DryRunPrintsTheCutAndStops) {
    const auto run = run_command(on_ranks(4, "--dry-run"));

    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_NE(run.out.find("rank grid      1.1.2.2"), std::string::npos) << run.out;
    EXPECT_EQ(run.out.find("outer iterations"), std::string::npos);
}

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
            for (const char* key : {"solution_norm", "solution_sum", "first_component", "true_relative_residual",
                                    "outer_iterations", "coarse_iterations_average", "history"})
                EXPECT_EQ(other[key], shm[key]) << key << " " << mpirun << " " << transport << " " << mode;
        }
    }
    if (mpis == 0) GTEST_SKIP() << "no mpirun installed";
}

#ifdef HALOCLINE_WITH_OFI
TEST(Transports, SharedMemoryAndLibfabricGiveTheSameBits) {
    const char* arguments = "--mpi 1.1.1.2 --vectors 12 --setup 2 ";
    const json shm = solve(ranks(2), arguments);
    for (const char* provider : {"tcp;ofi_rxm", "tcp;ofi_rxm,tagged", "shm"}) {
        const json other = solve(
            [&](const std::string& a) {
                return "env 'HALOCLINE_COMM_OFI_PROVIDER=" + std::string(provider) + "' " + on_ranks(2, a);
            },
            std::string(arguments) + "--transport ofi");
        EXPECT_EQ(other["transport"], "ofi");
        for (const char* key : {"solution_norm", "solution_sum", "first_component", "true_relative_residual",
                                "outer_iterations", "coarse_iterations_average", "history"})
            EXPECT_EQ(other[key], shm[key]) << key << " " << provider;
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
    for (const char* key : {"solution_norm", "solution_sum", "first_component", "true_relative_residual",
                            "outer_iterations", "coarse_iterations_average", "history"})
        EXPECT_EQ(verbs[key], shm[key]) << key;
}
#endif

TEST(Transports, ProgramsDoNotLinkMpi) {
    const auto run = run_command("ldd " + bin + "/coarse_solve");

    EXPECT_EQ(run.exit_code, 0);
    EXPECT_EQ(run.out.find("libmpi"), std::string::npos) << run.out;
}

TEST(Bits, AreTheSameFromRunToRun) {
    const json first = solve(ranks(2), ""), second = solve(ranks(2), "");

    for (const char* key : {"solution_norm", "solution_sum", "first_component", "history"})
        EXPECT_EQ(first[key], second[key]) << key;
}

/// A smooth random configuration: exp of small anti-Hermitian matrices, so that solves converge.
void write_smooth(const std::string& path, const halocline::lattice::coordinate& extents) {
    using namespace halocline::lattice;
    using matrix = std::array<complex, 9>;
    const auto product = [](const matrix& a, const matrix& b) {
        matrix c{};
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j)
                for (int k = 0; k < 3; ++k)
                    c[std::size_t(3 * i + j)] += a[std::size_t(3 * i + k)] * b[std::size_t(3 * k + j)];
        return c;
    };
    gauge_field links(site_order::lexicographic(extents), gauge_components);
    for (std::int64_t site = 0; site < links.volume(); ++site)
        for (int mu = 0; mu < 4; ++mu) {
            site_random random(77, static_cast<std::uint32_t>(mu), static_cast<std::uint64_t>(site));
            matrix h{};
            for (int i = 0; i < 3; ++i)
                for (int k = i + 1; k < 3; ++k) {
                    h[std::size_t(3 * i + k)] = 0.2 * complex(random.normal(), random.normal());
                    h[std::size_t(3 * k + i)] = -std::conj(h[std::size_t(3 * i + k)]);
                }
            const double a = 0.2 * random.normal(), b = 0.2 * random.normal();
            h[0] = complex(0, a);
            h[4] = complex(0, b);
            h[8] = complex(0, -a - b);
            matrix u{1, 0, 0, 0, 1, 0, 0, 0, 1}, term = u;
            for (int n = 1; n < 30; ++n) {
                term = product(term, h);
                for (auto& z : term) z /= n;
                for (std::size_t k = 0; k < 9; ++k) u[k] += term[k];
            }
            for (int k = 0; k < 9; ++k) {
                links.at(site, 18 * mu + 2 * k) = u[std::size_t(k)].real();
                links.at(site, 18 * mu + 2 * k + 1) = u[std::size_t(k)].imag();
            }
        }
    const box local{{0, 0, 0, 0}, extents};
    gauge_writer writer(path, gauge_format::ildg, extents);
    writer.create();
    const auto totals = writer.write(local, links);
    // ILDG records no plaquette, so any value will do here.
    writer.finish(totals, 0);
}

struct bad_input {
    const char* arguments;
    const char* says; ///< part of the message
};

TEST(BadInput, IsOneClearErrorWithExitCodeTwo) {
    const scratch_folder scratch;
    std::ofstream(scratch / "unknown.toml") << "[solver]\ntolerence = 1e-8\n";
    std::ofstream(scratch / "section.toml") << "[solvr]\nseed = 1\n";
    std::ofstream(scratch / "broken.toml") << "[solver\n";
    std::ofstream(scratch / "not-a-gauge-file") << "hello";
    write_smooth(scratch / "small.ildg", {2, 2, 2, 2});
    const std::string here = scratch / "";
    const bad_input cases[] = {
        {"--grid 8.8.8", "four whole numbers"},
        {"--grid 12.8.8.8", "multiple of 8"},
        {"--mpi 3.1.1.1", "needs 3 ranks, but the job has 2"},
        {"--mpi 1.2.1.1 --blocks 8.8.8.8", "admissible"},
        {"--blocks 3.4.4.4", "does not divide"},
        {"--vectors 0", "whole number from 1"},
        {"--blocks 1.1.1.2 --vectors 28", "12"},
        {"--tol nan", "relative residual"},
        {"--rhs twos", "ones, unit or random"},
        {"--transport carrier-pigeon", "carrier-pigeon"},
        {"--transport mpi", "mpirun -n 2"},
        {"--gauge /nowhere/at/all", "/nowhere/at/all"},
        {"--gauge HERE/not-a-gauge-file", "not-a-gauge-file"},
        {"--tile 2.1.1.1", "--tile"},
        {"HERE/unknown.toml", "unknown.toml:2:"},
        {"HERE/unknown.toml", "tolerance"},
        {"HERE/section.toml", "[solver]"},
        {"HERE/broken.toml", "broken.toml:1"},
        {"/nowhere/config.toml", "/nowhere/config.toml"},
        {"--json /nowhere/result.json", "/nowhere/result.json"},
        {"--json HERE/", "is a folder"},
        {"--json HERE/never.json --mpi 2.2.2.2", "needs 16 ranks"},
        {"--grid 2147483640.2147483640.2147483640.2147483640", "1e15 sites"},
        {"--grid 400.400.400.400", "GiB"},
        {"--gauge HERE/small.ildg --tile 2147483647.1.1.1", "--tile"},
        {"--no-such-flag", "no-such-flag"},
    };
    for (const auto& c : cases) {
        std::string arguments = c.arguments;
        if (const auto at = arguments.find("HERE/"); at != std::string::npos) arguments.replace(at, 5, here);

        const auto run = run_command(on_ranks(2, arguments));

        EXPECT_EQ(run.exit_code, 2) << arguments << "\n" << run.out << run.err;
        EXPECT_NE(run.err.find(c.says), std::string::npos) << arguments << "\n" << run.err;
        const auto first = run.err.find("error:");
        EXPECT_NE(first, std::string::npos) << run.err;
        EXPECT_EQ(run.err.find("error:", first + 1), std::string::npos) << "more than one message:\n" << run.err;
        EXPECT_LT(run.seconds, 5) << arguments; // the promise is 1 s; a loaded machine gets more
    }
    EXPECT_FALSE(std::filesystem::exists(scratch / "never.json"));
}

TEST(BadInput, RanksThatTheDefaultBlocksForbidAreToldWhichBlocksAllowThem) {
    const auto run = run_command(on_ranks(3, ""));

    EXPECT_EQ(run.exit_code, 2) << run.out;
    EXPECT_NE(run.err.find("--blocks 2.2.2.2 allows it"), std::string::npos) << run.err;
}

TEST(BadInput, IsToldBeforeTheDemoConfigurationIsMade) {
    const scratch_folder scratch;
    for (const char* flag : {"--grid 12.8.8.8", "--blocks 3.4.4.4", "--mpi 4.1.1.1"}) {
        const auto run = run_command("env HALOCLINE_DATA_DIR=" + (scratch / "") + " " + on_ranks(2, flag));

        EXPECT_EQ(run.exit_code, 2) << flag << run.err;
        EXPECT_EQ(run.out.find("generating"), std::string::npos) << run.out;
        EXPECT_TRUE(std::filesystem::is_empty(scratch / "")) << flag;
    }
}

TEST(Configs, JsonToADeviceLeavesTheDeviceThere) {
    const auto run = run_command(on_ranks(1, "--max-iterations 1 --setup 0 --vectors 4 --json /dev/stdout"));

    EXPECT_EQ(run.exit_code, 1) << run.err;
    EXPECT_NE(run.out.find("\"true_relative_residual\""), std::string::npos) << run.out;
    EXPECT_TRUE(std::filesystem::is_symlink("/dev/stdout"));
}

/// Every rank's process of a job that halocline-run started.
std::vector<int> pids_of(const std::string& marker) {
    std::vector<int> pids;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
        const std::string name = entry.path().filename();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        std::string line = halocline_test::read_text(entry.path() / "cmdline");
        for (auto& c : line)
            if (c == '\0') c = ' ';
        if (line.find(marker) != std::string::npos && line.find("/coarse_solve ") < 200 &&
            line.find("halocline-run") == std::string::npos && !line.starts_with("timeout") && !line.starts_with("sh "))
            pids.push_back(std::stoi(name));
    }
    return pids;
}

TEST(Faults, KilledRankEndsTheJobAndSurvivorsNameIt) {
    run_command(on_ranks(1, "--max-iterations 1")); // the demo configuration is there
    for (int round = 0; round < 3; ++round) {
        const std::string marker = "1" + std::to_string(::getpid()) + std::to_string(round); // a seed to find it by
        command_result run;
        // Never converges within the iterations: the job is busy when it is hit.
        std::thread job([&] {
            run = run_command(on_ranks(2, "--tol 1e-200 --max-iterations 100000000 --setup 0 --seed " + marker));
        });
        std::vector<int> pids;
        for (int i = 0; i < 400 && pids.size() < 2; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            pids = pids_of("--seed " + marker);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(300 * round)); // set-up, solve
        EXPECT_EQ(pids.size(), 2u);
        const auto killed = std::chrono::steady_clock::now();
        if (pids.size() == 2) ::kill(pids[static_cast<std::size_t>(round) % 2], SIGKILL);
        job.join();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - killed;

        EXPECT_EQ(run.exit_code, 3) << run.out << run.err;
        EXPECT_LT(took.count(), 10); // on a busy machine; waits end by themselves after 60 s
        if (pids.size() == 2) {
            const std::string culprit = std::to_string(pids[static_cast<std::size_t>(round) % 2]);
            EXPECT_NE(run.err.find(culprit), std::string::npos) << run.err;
            EXPECT_NE(run.err.find("rank "), std::string::npos) << run.err;
        }
        EXPECT_TRUE(pids_of("--seed " + marker).empty()) << "orphans";
    }
}

TEST(OddLattices, DefaultsNeverFail) {
    const scratch_folder scratch;
    for (const halocline::lattice::coordinate extents :
         {halocline::lattice::coordinate{6, 6, 6, 6}, {4, 4, 4, 8}, {7, 5, 3, 4}, {2, 2, 2, 2}, {10, 4, 4, 6}}) {
        const std::string file = scratch / (halocline::lattice::to_string(extents) + ".ildg");
        write_smooth(file, extents);

        const json one = solve(ranks(1), "--setup 1 --vectors 8 --gauge " + file);

        EXPECT_TRUE(one["converged"]) << halocline::lattice::to_string(extents);
        if (extents == halocline::lattice::coordinate{7, 5, 3, 4}) {
            EXPECT_FALSE(one["notes"].empty());
        }
    }
}

TEST(OddLattices, TilingRepeatsTheSolution) {
    const scratch_folder scratch;
    const std::string file = scratch / "444.ildg";
    write_smooth(file, {4, 4, 4, 4});

    const json once = solve(ranks(1), "--vectors 8 --setup 1 --tol 1e-12 --gauge " + file);
    const json tiled = solve(ranks(2), "--vectors 8 --setup 1 --tol 1e-12 --tile 2.1.1.1 --gauge " + file);

    EXPECT_TRUE(tiled["converged"]);
    EXPECT_NEAR(tiled["plaquette"], once["plaquette"], 1e-12);
    EXPECT_LE(std::abs(number(tiled["solution_sum"]) - 2.0 * number(once["solution_sum"])),
              1e-8 * std::abs(number(tiled["solution_sum"])));
}

TEST(Configs, EachShippedFileParses) {
    int files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(HALOCLINE_SOURCE "/configs")) {
        if (entry.path().extension() != ".toml") continue;
        halocline::app::settings_reader reader;
        EXPECT_NO_THROW(reader.read_file(entry.path())) << entry.path();
        ++files;
    }
    EXPECT_GE(files, 3);
}

TEST(Configs, DemoNamesEveryKeyWithItsDefault) {
    const std::string text = halocline_test::read_text(HALOCLINE_SOURCE "/configs/demo.toml");
    halocline::app::settings_reader from_file, built_in;
    from_file.read_file(HALOCLINE_SOURCE "/configs/demo.toml");

    EXPECT_EQ(from_file.effective(), built_in.effective());
    for (const auto& key : halocline::app::setting_keys())
        EXPECT_NE(text.find(key.name + " = "), std::string::npos) << key.path();
}

TEST(Configs, EnvironmentBeatsFileAndFlagBeatsEnvironment) {
    const auto run = run_command("env HALOCLINE_SOLVER_MAX_ITERATIONS=1 " + on_ranks(1, ""));
    const auto flag = run_command("env HALOCLINE_SOLVER_MAX_ITERATIONS=1 " + on_ranks(1, "--max-iterations 1000"));

    EXPECT_EQ(run.exit_code, 1) << run.err;
    EXPECT_EQ(flag.exit_code, 0) << flag.err;
}

struct reference_case {
    const char *file, *arguments;
    double plaquette, ones_norm;
    complex ones_inner;
    double x_norm;
    complex x_sum, x_first;
    int iterations; ///< of the reference code
    double solution_tolerance;
};

void check_reference(const reference_case& c) {
    const std::string path = halocline_test::reference_file(c.file);
    if (path.empty()) GTEST_SKIP() << c.file << " is not there (set HALOCLINE_TEST_CONFIGS)";
    json one;
    for (const int n : {1, 2, 4}) {
        const json r = solve(ranks(n), "--gauge " + path + " " + c.arguments);

        EXPECT_TRUE(r["converged"]);
        EXPECT_NEAR(r["plaquette"], c.plaquette, 1e-9);
        EXPECT_NEAR(r["operator_ones_norm"], c.ones_norm, 1e-10 * c.ones_norm);
        EXPECT_LE(std::abs(number(r["operator_ones_inner"]) - c.ones_inner), 1e-10 * std::abs(c.ones_inner));
        EXPECT_NEAR(r["solution_norm"], c.x_norm, c.solution_tolerance * c.x_norm);
        EXPECT_LE(std::abs(number(r["solution_sum"]) - c.x_sum), c.solution_tolerance * std::abs(c.x_sum));
        EXPECT_LE(std::abs(number(r["first_component"]) - c.x_first), c.solution_tolerance * std::abs(c.x_first));
        EXPECT_NEAR(int(r["outer_iterations"]), c.iterations, 2);
        if (n == 1) one = r;
        EXPECT_EQ(r["outer_iterations"], one["outer_iterations"]) << n << " ranks";
    }
}

TEST(Reference, FourToTheFourth) {
    check_reference({"4x4x4x4b6.0000id3n1",
                     "--blocks 2.2.2.2",
                     0.5955652897031,
                     227.892329439098,
                     {11020.82137185594, 59.40204700538727},
                     20.4300218875926,
                     {811.284253434671, -8.8540000262752},
                     {-0.00882730052787024, -0.178325483886883},
                     10,
                     1e-8});
}
TEST(Reference, EightToTheFourth) {
    check_reference({"8x8x8x8b6.0000id3n1",
                     "",
                     0.5924316992043,
                     896.809175505568,
                     {171771.87615210586, -387.67967899314755},
                     86.2588818345744,
                     {13363.8316685821, 51.6090649820916},
                     {0.622956347039537, -0.0663170620211734},
                     14,
                     1e-8});
}
TEST(Reference, IldgSampleIsReadInTheRightDirections) {
    const std::string path = halocline_test::reference_file("milc_lat.sample.l4444.ildg");
    if (path.empty()) GTEST_SKIP() << "milc_lat.sample.l4444.ildg is not there (set HALOCLINE_TEST_CONFIGS)";

    const json r = solve(ranks(2), "--gauge " + path);

    EXPECT_NEAR(r["operator_ones_norm"], 130.315593412, 1e-9 * 130);
    EXPECT_NEAR(r["solution_norm"], 78.269434763, 1e-8 * 78.3);
    EXPECT_LE(std::abs(number(r["solution_sum"]) - complex(1596.616298375, -365.386643453)), 1e-8 * 1638);
}

} // namespace
