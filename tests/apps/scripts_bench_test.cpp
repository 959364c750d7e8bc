// SPDX-License-Identifier: Apache-2.0
// scripts/bench.sh and what its questions start, with programs that only tell how they were called.
#include "fake_system.hpp"
#include "programs.hpp"

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>

namespace {

using namespace halocline_test;

TEST(BenchScript, RefusesWrongOptionsBeforeItInstallsOrBuilds) {
    const fake_system here;
    here.write("scripts/install-dependencies.sh", "echo installs >&2; exit 1");
    const struct {
        const char *options, *error;
    } cases[] = {
        {"targets --runs 0", "bench.sh targets: --runs '0': expected a whole number from 1 on"},
        {"targets --runs", "bench.sh targets: --runs '': expected a whole number from 1 on"},
        {"targets --qick", "bench.sh targets: there is no option '--qick'"},
        {"targets --again --verbs",
         "bench.sh targets: --again measures nothing: it goes with none of the other options"},
        {"targets --again /nowhere", "bench.sh targets: --again '/nowhere': that folder has no run-N.json"},
        {"p2p --quick --transport tcp", "bench.sh p2p: --transport 'tcp': expected shm, ofi, mpi, verbs or all"},
        {"sum --seconds 1 --np two", "bench.sh sum: --np 'two': expected a whole number from 1 on"},
        {"halo --json", "bench.sh halo: --json needs a value"},
        {"all --quick", "bench.sh all: there is no option '--quick'"},
        {"coarse_halo --np 1",
         "bench.sh coarse_halo: --np 1: one rank has no halo exchange to compare; take 2 or more"}};
    for (const auto& c : cases) {
        const auto run = here.run(std::string("bench.sh ") + c.options, "");

        EXPECT_EQ(run.exit_code, 2) << c.options;
        EXPECT_EQ(run.err, std::string(c.error) + "\n") << c.options;
    }
}

TEST(BenchScript, ListsEveryQuestion) {
    const fake_system here;
    const auto list = here.run("bench.sh", "");

    EXPECT_EQ(list.exit_code, 0) << list.err;
    for (const auto& file : std::filesystem::directory_iterator(HALOCLINE_SOURCE "/scripts/bench"))
        if (file.path().extension() == ".bash") {
            EXPECT_TRUE(contains(list.out, "\n  " + file.path().stem().string() + " ")) << list.out;
        }
    const auto wrong = here.run("bench.sh support/files", "");
    EXPECT_EQ(wrong.exit_code, 2);
    EXPECT_TRUE(contains(wrong.err, "no question is called 'support/files'\n")) << wrong.err;
}

/// A machine of two processors where everything is built. Each call of a program is a line of calls().
class measuring_system : public fake_system {
  public:
    measuring_system() {
        for (const std::string tool : {"awk", "date", "env", "mktemp", "mv", "paste", "rm", "sort", "tee", "uname"})
            link(tool);
        write("true", ":");
        write("nproc", "echo 2");
        write("taskset", log("taskset \"$*\"") + "shift 2; exec \"$@\"");
        write("scripts/install-dependencies.sh", ":");
        write("scripts/build.sh", ":");
        program("halocline-run", "while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"");
        for (const char* const bench :
             {"bench_halo", "bench_targets", "bench_p2p", "bench_window", "bench_plan_setup", "bench_checksum",
              "bench_dirac", "bench_lane_copy", "bench_solve", "bench_propagator", "bench_sum", "bench_stencil"})
            program(bench, "echo '{\"ran\":\"" + std::string(bench) + "\"}'");
        program("bench_halo", "while [ $# -gt 0 ]; do [ \"$1\" != --json ] || echo '{\"line\":1}' >$2; shift; done");
        solve_takes("0.5");
    }
    /// Writes build/release/bin/NAME.
    void program(const std::string& name, const std::string& text) const {
        write("build/release/bin/" + name,
              log(name + " \"$*\" \"${HALOCLINE_COMM_TRANSPORTS}$HALOCLINE_CHECK\"") + text);
    }
    /// What coarse_solve says about its halo.
    void solve_takes(const std::string& seconds) const {
        program("coarse_solve", "while [ \"$1\" != --json ]; do shift; done\n"
                                "echo '{\"seconds\":{\"solve\":2.0,\"coarse\":1.0,\"halo\":" +
                                    seconds + "}}' >$2");
    }
    /// Open MPI is installed.
    void has_openmpi() const {
        write("mpirun.openmpi", log("mpirun \"yield $OMPI_MCA_mpi_yield_when_idle\" \"$*\"") +
                                    "while [ \"$1\" != -n ]; do shift; done; shift 2; exec \"$@\"");
        program("bench_halo_openmpi", ":");
        write("build/release/lib/halocline/halocline-mpi-openmpi.so", "");
    }
    [[nodiscard]] std::string calls() const { return read_text(folder() + "calls"); }
    [[nodiscard]] std::string text_of(const std::string& name) const { return read_text(folder() + name); }

  private:
    [[nodiscard]] std::string log(const std::string& words) const {
        return "echo " + words + " >>" + folder() + "calls\n";
    }
};

/// How often `text` is in `in`.
int count(const std::string& in, const std::string& text) {
    int n = 0;
    for (std::size_t at = in.find(text); at != std::string::npos; at = in.find(text, at + text.size())) ++n;
    return n;
}

TEST(BenchScript, AForeignPeerIsStartedWithAsManyRanksAsItCanHave) {
    const measuring_system here;

    const auto run = here.run("bench.sh halo --quick --peer two=A --peer any=\"B {np}\"", "");

    EXPECT_EQ(run.exit_code, 0) << run.err;
    const std::regex with_two("-n 2 -- [^\n]*--peer two=A --peer any=B 2"), with_four("-n 4 -- [^\n]*--peer any=B 4");
    EXPECT_TRUE(std::regex_search(here.calls(), with_two)) << here.calls();
    EXPECT_TRUE(std::regex_search(here.calls(), with_four)) << here.calls();
    EXPECT_EQ(count(here.calls(), "\nbench_halo "), 3) << here.calls();
    EXPECT_EQ(count(here.calls(), "\nbench_halo --table --seconds 30"), 1) << here.calls();
    EXPECT_EQ(count(here.calls(), "/bin/bench_halo --table"), 3) << "by the launcher: " << here.calls();
    EXPECT_EQ(count(here.calls(), "two=A"), 2) << "by the launcher of 2 ranks, and by the bench: " << here.calls();
}

TEST(BenchScript, FilesThatCanBeReadOnlyOnceGetAllLinesAndAreNotReadBack) {
    const measuring_system here;

    const auto run = here.run("bench.sh halo --quick --json /dev/stdout", "");

    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(count(run.out, "{\"line\":1}\n"), 3) << run.out;
    EXPECT_TRUE(std::regex_search(here.calls(), std::regex("bench_targets [^\n]*/2ranks.json [^\n]*/self.json")));
    EXPECT_FALSE(contains(here.calls(), "bench_targets /dev")) << here.calls();
}

TEST(BenchScript, WhatTheEnvironmentSetsIsNotMeasured) {
    const measuring_system here;

    const auto run = here.run("bench.sh stencil", "", 1000, "HALOCLINE_COMM_TRANSPORTS=tcp HALOCLINE_CHECK=comm");

    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.err, "bench.sh stencil: measured without what the environment sets: HALOCLINE_CHECK "
                       "HALOCLINE_COMM_TRANSPORTS\n");
    EXPECT_EQ(here.calls(), "bench_stencil  \n");
}

TEST(BenchScript, FourRanksAreKeptToTwoProcessorsEvenIfTwoRanksAreNotBound) {
    const measuring_system here;

    const auto run = here.run("bench.sh targets --quick", "");

    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_TRUE(std::regex_search(here.calls(), std::regex("taskset -c [0-9]+(,[0-9]+)? [^\n]*halocline-run -n 4 ")))
        << here.calls();
    EXPECT_TRUE(contains(run.err, "without figures of the demo's solve")) << run.err;
    here.write("nproc", "echo 16"); // as if taskset did nothing
    const auto wide = here.run("bench.sh targets --quick", "");
    EXPECT_EQ(wide.exit_code, 1);
    EXPECT_TRUE(contains(wide.err, "4 ranks can't be kept to the processors")) << wide.err;
}

TEST(BenchScript, OpenMpiYieldsOnlyIfRanksOutnumberProcessors) {
    const measuring_system here;
    here.has_openmpi();

    EXPECT_EQ(here.run("bench.sh halo --quick", "").exit_code, 0);

    EXPECT_TRUE(contains(here.calls(), "=env OMPI_MCA_mpi_yield_when_idle=0 OMPI_MCA_hwloc_base_binding_policy=none "
                                       "mpirun.openmpi -n 2 "))
        << here.calls();
    EXPECT_TRUE(contains(here.calls(), "=env OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_hwloc_base_binding_policy=none "
                                       "mpirun.openmpi -n 4 "))
        << here.calls();
}

TEST(BenchScript, WhatTheQuestionIsAboutIsMissedWithCode77) {
    const measuring_system here;

    for (const std::string question : {"halo_network", "network_messages", "verbs", "p2p --transport ofi",
                                       "p2p --transport mpi", "p2p --transport verbs", "coarse_halo"}) {
        const auto run = here.run("bench.sh " + question, "");

        EXPECT_EQ(run.exit_code, 77) << question << run.err;
    }
    EXPECT_EQ(here.calls(), "") << "nothing was started";
}

TEST(BenchScript, LinesOfTheCoarseHaloSayWhatWasMeasured) {
    const measuring_system here;
    here.has_openmpi();
    here.write("uname", "echo host");

    const auto run = here.run("bench.sh coarse_halo --rounds 2", "", 1000, "HALOCLINE_BENCH_GIT=code");
    here.solve_takes("0");
    const auto no_ratio = here.run("bench.sh coarse_halo --rounds 2", "");

    EXPECT_EQ(run.exit_code, 0) << run.err;
    const std::string begin = "{\"bench\":\"coarse_halo\",\"transport\":",
                      end = ",\"pinned\":true,\"host\":\"host\",\"compiler\":\"unknown\",\"git\":\"code\"}\n";
    EXPECT_EQ(
        run.out,
        begin +
            "\"shm\",\"ranks\":2,\"rounds\":2,\"solve_ms\":2000.000,\"coarse_ms\":1000.000,"
            "\"halo_ms\":500.000" +
            end + begin +
            "\"openmpi\",\"ranks\":2,\"rounds\":2,\"solve_ms\":2000.000,\"solve_over_shm\":1.00,\"saved_percent\":0.0,"
            "\"coarse_ms\":1000.000,\"coarse_over_shm\":1.00,\"halo_ms\":500.000,\"halo_over_shm\":1.00" +
            end);
    EXPECT_EQ(no_ratio.exit_code, 1) << no_ratio.out;
    EXPECT_TRUE(contains(no_ratio.err, "\"halo\" took no time over shm")) << no_ratio.err;
}

TEST(BenchScript, AllQuestionsAtTheirQuickestLeaveTheFilesOfAFullRun) {
    const measuring_system here;
    ASSERT_EQ(here.run("bench.sh halo", "").exit_code, 0);
    const std::string judgement = "build/release/bench-halo-targets.md", lines = "build/release/bench-halo-2ranks.json";
    here.write(judgement, "of a full run");
    here.write(lines, "of a full run");

    const auto run = here.run("bench.sh all", "");

    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_TRUE(contains(here.text_of(judgement), "of a full run"));
    EXPECT_TRUE(contains(here.text_of(lines), "of a full run"));
    EXPECT_TRUE(contains(here.calls(), "bench_sum --seconds 4")) << here.calls();
    EXPECT_TRUE(contains(run.err, "bench_verbs can't be built")) << run.err;
}

TEST(BenchScript, MessagesOverVerbsAreComparedWhileTheMachineHasOneSpeed) {
    const scratch_folder scratch;
    std::ofstream lines(scratch / "lines");
    const auto add = [&](const char* who, const char* speed, int slices, double us) {
        lines << R"({"bench":"p2p","pattern":"latency","bytes":8,"who":")" << who << R"(","speed":")" << speed
              << R"(","slices":)" << slices << R"(,"noisy":false,"bare_us_median":)" << us << "}\n";
    };
    add(R"(ours","mode":"messages)", "fast", 9, 1);
    add(R"(ours","mode":"messages)", "slow", 3, 4);
    add(R"(openmpi","mode":"two-sided)", "slow", 9, 6);
    lines.close();

    const auto run = shell("awk -v machine=real -f " HALOCLINE_SOURCE "/scripts/bench/support/verbs_tables.awk " +
                           (scratch / "lines"));

    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_TRUE(std::regex_search(run.out, std::regex("\n +8 +slow +4.00 +- +6.00 +- +1.50\n"))) << run.out;
    EXPECT_FALSE(contains(run.out, "fast")) << run.out;
}

/// With an emulator that only looks for the files that it was given, from its own folder.
TEST(BenchScript, TheEmulatedMachinesFilesMayHaveARelativeName) {
    const fake_system here;
    std::filesystem::copy_file(HALOCLINE_SOURCE "/scripts/verbs-vm.sh", here.folder() + "scripts/verbs-vm.sh");
    for (const std::string tool : {"cksum", "flock", "mktemp", "realpath", "rm", "timeout"}) here.link(tool);
    for (const std::string tool : {"busybox", "depmod", "modprobe", "cpio", "rdma"}) here.write(tool, ":");
    here.write("setpriv", "shift 2; exec \"$@\"");
    here.write("qemu-system-x86_64", "for word; do case $word in *guest=*) run=${word#*guest=};; esac; done\n"
                                     "cd / && echo ran >$run/output && echo 0 >$run/status");
    here.write("cache/vmlinuz", "");
    std::ofstream(here.folder() + "cache/stamp") << shell("cksum <" HALOCLINE_SOURCE "/scripts/verbs-vm.sh").out;

    const auto run = here.run("verbs-vm.sh true", "", 1000, "VERBS_VM_CACHE=cache /usr/bin/env -C " + here.folder());

    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.out, "ran\n");
}

} // namespace
