// SPDX-License-Identifier: Apache-2.0
// The scripts: from any folder, and what they ask a system to install.
#include "fake_system.hpp"
#include "programs.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace {

using namespace halocline_test;

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

TEST(Scripts, PackagesAreDemandedByWhatNeedsThem) {
    const fake_system here;
    const std::string install = "Missing packages. Run this, then start again:\n  sudo apt-get update && sudo apt-get "
                                "install -y --no-install-recommends ",
                      instead = "Or set HALOCLINE_WITHOUT_PACKAGES=1, to go on with what is there.\n";
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
        EXPECT_EQ(run.err, *c.demanded == '\0' ? "" : install + c.demanded + "\n" + instead) << c.purpose;
    }
    const auto root = here.run("install-dependencies.sh build", "spin libhwy-dev mpich", 0);
    EXPECT_EQ(root.exit_code, 0) << root.err;
    const std::string get = "install -y --no-install-recommends ";
    EXPECT_EQ(here.installed(), get + "libhwy-dev -qq\n" + get + "mpich -qq\n");
}

TEST(Scripts, OptionalPackagesThatASystemLacksAreDoneWithout) {
    const fake_system here;
    here.write("apt-get", "case \" $* \" in *\" mpich \"*) echo E: mpich >&2; exit 100;; esac");

    const auto optional = here.run("install-dependencies.sh bench", "libpmix-dev mpich", 0);
    EXPECT_EQ(optional.exit_code, 0) << optional.err;
    EXPECT_EQ(optional.err,
              "E: mpich\ninstall-dependencies.sh: mpich can't be installed: what needs it is left out\n"
              "install-dependencies.sh: this is tried again in ten minutes, or without build/packages-that-failed; "
              "HALOCLINE_WITHOUT_PACKAGES=1: never\n");
    const auto again = here.run("install-dependencies.sh bench", "libpmix-dev mpich", 0);
    EXPECT_EQ(again.exit_code, 0) << again.err;
    EXPECT_EQ(again.out, "installing: libpmix-dev\n") << "what failed is not tried each time";
    EXPECT_EQ(again.err,
              "install-dependencies.sh: left out, as they failed minutes ago (build/packages-that-failed): mpich\n");
    here.write("build/packages-that-failed", "mpich 600");
    const auto later = here.run("install-dependencies.sh bench", "mpich", 0);
    EXPECT_EQ(later.out, "installing: mpich\n") << "later it may be there";

    here.write("apt-get", "[ $1 = update ]");
    here.write("build/packages-that-failed", "");
    const auto needed = here.run("install-dependencies.sh bench", "libhwy-dev mpich", 0);
    EXPECT_EQ(needed.exit_code, 1);
    EXPECT_EQ(needed.err, "install-dependencies.sh: these can't be installed: libhwy-dev\n");
}

TEST(Scripts, BuildsAreMadeWithoutACcacheThatCannotKeepFiles) {
    const fake_system here;
    here.write("cmake", "echo \"$*\" >>" + here.folder() + "calls");
    here.write("c++", ":");
    here.write("ccache", "echo \"ccache: error: Failed to create directory\" >&2; exit 1");

    const auto broken = here.run("build.sh", "");
    here.write("ccache", "exec \"$@\"");
    const auto works = here.run("build.sh", "");

    EXPECT_EQ(broken.exit_code, 0) << broken.err;
    EXPECT_EQ(broken.err, "build.sh: without ccache, which does not work here: ccache: error: Failed to create "
                          "directory\n");
    EXPECT_EQ(works.exit_code, 0) << works.err;
    EXPECT_EQ(works.err, "");
    EXPECT_EQ(read_text(here.folder() + "calls"),
              "--preset release -DCMAKE_CXX_COMPILER_LAUNCHER=\n--build --preset release\n"
              "--preset release -DCMAKE_CXX_COMPILER_LAUNCHER=ccache\n--build --preset release\n");
}

TEST(Scripts, FormatChecksCToo) {
    const fake_system here;
    std::filesystem::copy_file(HALOCLINE_SOURCE "/scripts/format.sh", here.folder() + "scripts/format.sh");
    here.write("git", "case \" $* \" in *\" *.c \"*) printf \"halo_c.c\\\\0\";; esac");
    here.write("clang-format-14", "case \" $* \" in *\" halo_c.c \"*) exit 1;; esac");

    EXPECT_EQ(here.run("format.sh --check", "").exit_code, 1);
    here.write("clang-format-14", ":");
    EXPECT_EQ(here.run("format.sh --check", "").exit_code, 0);
}

TEST(Scripts, KillCampaignTakesABuildFromTheCallersFolder) {
    const scratch_folder scratch;
    std::filesystem::create_directories(scratch / "mine/tests");
    std::ofstream(scratch / "mine/tests/comm_kill_campaign") << "#!/bin/sh\necho campaign $1 $2\n";
    std::filesystem::permissions(scratch / "mine/tests/comm_kill_campaign", std::filesystem::perms::owner_all);

    const auto run = shell("cd " + (scratch / "") + " && BUILD=mine " HALOCLINE_SOURCE "/scripts/kill-campaign.sh 7");

    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_TRUE(contains(run.out, "campaign shm 7")) << run.out << run.err;
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

    for (const auto& [script, purpose] : {std::pair{"build.sh", "build"},
                                          {"test.sh", "all"},
                                          {"bench.sh sum", "bench"},
                                          {"bench.sh verbs", "all"},
                                          {"bench.sh p2p --transport verbs", "all"}})
        EXPECT_EQ(here.run(script, "").err, std::string("for ") + purpose + ".\n") << script;
}

} // namespace
