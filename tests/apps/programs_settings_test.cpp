// SPDX-License-Identifier: Apache-2.0
// Settings of programs: variables and config files, right and wrong, of one rank or of all.
#include "programs.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace {

using namespace halocline_test;

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

TEST(Programs, InfoLeavesSectionsOfOtherProgramsAlone) {
    const scratch_folder scratch;
    std::ofstream(scratch / "mine.toml") << "[hmc]\nsteps = 5\n[comm]\ntransports = [\"shm\"]\n";
    const std::string config = scratch / "mine.toml";

    const auto info = run_command(bin + "halocline-info " + config),
               solve = run_command(bin + "coarse_solve " + config);

    EXPECT_EQ(info.exit_code, 0) << info.err;
    EXPECT_EQ(solve.exit_code, 2);
    EXPECT_TRUE(contains(solve.err, "mine.toml:1:1: unknown section [hmc]")) << solve.err;
}

TEST(Programs, VariablesWithAWrongNameAreRefusedWithTheNearest) {
    const std::pair<std::string, std::string> wrong[] = {
        {"HALOCLINE_COMM_TRANSPORT", "HALOCLINE_COMM_TRANSPORTS"},
        {"HALOCLINE_TRANSPORT", "HALOCLINE_COMM_TRANSPORTS"},
        {"HALOCLINE_DEADLINE_MS", "HALOCLINE_FAULTS_DEADLINE_MS"},
        {"HALOCLINE_COM_TRANSPORTS", "HALOCLINE_COMM_TRANSPORTS"},
        {"HALOCLINE_COMMS_TRANSPORTS", "HALOCLINE_COMM_TRANSPORTS"},
        {"HALOCLINE_COMMTRANSPORTS", "HALOCLINE_COMM_TRANSPORTS"},
        {"HALOCLINE_FAULT_DEADLINE_MS", "HALOCLINE_FAULTS_DEADLINE_MS"},
        {"HALOCLINE_GRACE", "HALOCLINE_GRACE_MS"},
        {"HALOCLINE_STALL", "HALOCLINE_STALL_MS"},
        {"HALOCLINE_BOOTSTARP", "HALOCLINE_BOOTSTRAP"},
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
        run_command("env HALOCLINE_ROOT=/opt HALOCLINE_PATH=/opt HALOCLINE_HOME=/opt HALOCLINE_DIR=/opt "
                    "HALOCLINE_BIN=/opt HALOCLINE_LIB=/opt HALOCLINE_VERSION=1 HALOCLINE_HMC_STEPS=1 " +
                    run2 + "coarse_solve --dry-run");
    EXPECT_EQ(foreign.exit_code, 0) << foreign.err;
}

TEST(Programs, AGaugeFileWithoutANameIsNotTheDemoConfiguration) {
    expect_one_error(run_command("env HALOCLINE_LATTICE_GAUGE= " + run2 + "coarse_solve --dry-run"), 2,
                     "HALOCLINE_LATTICE_GAUGE is empty: it names no gauge file");
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

/// Whoever asks for a network must hear that it is not used.
TEST(Programs, ANetworkThatIsPassedOverIsTold) {
    const std::string told = "halocline: rank 0";
    const auto by_name = run_command("env HALOCLINE_COMM_TRANSPORTS=mpi,shm " + run2 + "halo_c");
    const auto by_default = run_command(run2 + "halo_c");

    EXPECT_TRUE(contains(by_name.out, "over shm")) << by_name.out << by_name.err;
    EXPECT_TRUE(contains(by_name.err, "transport mpi reaches nobody, though it is named before shm: this job was not "
                                      "started by an MPI launcher"))
        << by_name.err;
    EXPECT_EQ(by_name.err.find(told), by_name.err.rfind(told)) << "once: " << by_name.err;
    EXPECT_EQ(by_default.err, "");
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

TEST(Programs, TheLaunchersNetworkOverridesFilesAndVariables) {
    const scratch_folder scratch;
    const std::string file = scratch / "job.toml";
    std::ofstream(file) << "[comm]\nnetwork = 'nosuch0'\n";
    for (const std::string variable : {"HALOCLINE_NETWORK", "HALOCLINE_COMM_NETWORK"}) {
        const auto run =
            run_command("env " + variable + "=nosuch1 " + bin + "halocline-run -n 1 --network 10.0.0.0/8 " +
                        "--config " + file + " -- " + bin + "halocline-info " + file);

        EXPECT_EQ(run.exit_code, 0) << run.err;
        EXPECT_TRUE(contains(run.out, "10.0.0.0/8   [HALOCLINE_COMM_NETWORK]")) << run.out;
    }
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

/// What forbids a job may show in the rest.
TEST(Programs, InfoShowsBuildAndMachineAlsoWhereThereIsNoJob) {
    for (const std::string& line :
         {"ulimit -f 100; " + run2 + "halocline-info", "HALOCLINE_COMM_TRANSPORT=shm " + run2 + "halocline-info",
          run2 + "halocline-info --transport mock", run2 + "halocline-info /nowhere.toml"}) {
        const auto run = shell(line);

        EXPECT_EQ(run.exit_code, 2) << line << run.err;
        EXPECT_EQ(run.err.find('\n'), run.err.size() - 1) << line << run.err;
        EXPECT_TRUE(run.out.starts_with("build\n  halocline ")) << line << run.out;
        EXPECT_TRUE(contains(run.out, "\nmachine\n")) << line << run.out;
        EXPECT_TRUE(contains(run.out, "\n  memlock limit ")) << line << run.out;
        EXPECT_FALSE(contains(run.out, "\njob\n")) << line << run.out;
    }
}

} // namespace
